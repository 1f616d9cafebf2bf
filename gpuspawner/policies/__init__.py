"""Who may have what: the administrator's policies, what counts toward limits, what is left."""
