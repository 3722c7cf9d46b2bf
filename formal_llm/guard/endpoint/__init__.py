"""The guard as an HTTP endpoint in front of the APIs of models: any agent in any language, by one address."""
