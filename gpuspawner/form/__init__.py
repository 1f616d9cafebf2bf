"""The spawn form: fields for the hub's own `<form>`, rendered on the server.

It works without its script, and escapes what people and the cluster send. Begin with `render`.
"""
