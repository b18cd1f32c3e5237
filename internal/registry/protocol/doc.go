// Package protocol serves the content of a store with the OCI distribution API. It controls no access.
package protocol
