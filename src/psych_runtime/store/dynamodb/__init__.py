"""The store in DynamoDB: three tables, one transaction for each unit."""
