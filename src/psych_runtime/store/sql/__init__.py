"""The stores on a SQL server: one implementation of the port, and what each dialect differs in."""
