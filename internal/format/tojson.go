package format

import "bytes"

// toJSON gives one document as canonical JSON. Errors are faults. A line end of
// CRLF is one of LF to every reader, so that nobody needs to know both.
func toJSON(raw []byte, limits *Limits) ([]byte, error) {
	if bytes.IndexByte(raw, '\r') >= 0 {
		raw = bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n"))
	}
	json, f, ok := fastJSON(raw, limits)
	switch {
	case f != nil:
		return nil, f
	case ok:
		return json, nil
	}
	return generalJSON(raw, limits)
}
