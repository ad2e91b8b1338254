"""PostgreSQL over asyncpg: one data-modifying statement for each commit of many units."""
