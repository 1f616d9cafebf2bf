"""The API's times: RFC 3339, in UTC."""

from datetime import UTC, datetime


def moment(text: str | None) -> datetime | None:
    """Parse a time; return None if there is none, or if it can't be read."""
    try:
        at = datetime.fromisoformat(text or "")
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
