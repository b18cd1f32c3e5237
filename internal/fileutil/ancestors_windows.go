package fileutil

// CheckAncestors does nothing: the directories of a user are in the profile, which the system
// protects.
func CheckAncestors(string) error { return nil }
