"""The spawn form: fields for the hub's own `<form>`, rendered on the server."""
