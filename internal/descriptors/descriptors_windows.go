package descriptors

// CloseOnExec does nothing: on Windows a child inherits only the handles that its
// parent lists.
func CloseOnExec(int) error { return nil }
