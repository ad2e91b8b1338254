"""MySQL and MariaDB over aiomysql: one packet for each commit of many units."""
