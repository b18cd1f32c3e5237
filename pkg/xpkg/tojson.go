package xpkg

import (
	"bytes"
	"sync"
)

// yamlReader turns the documents of one stream or folder into JSON. It may be
// used from many goroutines.
type yamlReader struct {
	limits Limits
	// general is held while the general libraries read a document, which takes many
	// times the memory of the document, so that only one does.
	general sync.Mutex
}

func newYAMLReader(limits Limits) *yamlReader {
	return &yamlReader{limits: limits.withDefaults()}
}

// toJSON returns one document as canonical JSON. Errors are faults. CRLF line ends are
// converted to LF first.
func (r *yamlReader) toJSON(raw []byte) ([]byte, error) {
	if bytes.IndexByte(raw, '\r') >= 0 {
		raw = bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n"))
	}
	json, f, ok := fastJSON(raw, &r.limits)
	switch {
	case f != nil:
		return nil, f
	case ok:
		return json, nil
	}
	r.general.Lock()
	defer r.general.Unlock()
	return generalJSON(raw, &r.limits)
}
