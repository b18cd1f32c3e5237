package format

// toJSON gives one document as canonical JSON. Errors are faults.
func toJSON(raw []byte, limits *Limits) ([]byte, error) {
	return generalJSON(raw, limits)
}
