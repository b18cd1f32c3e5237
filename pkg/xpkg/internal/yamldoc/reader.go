package yamldoc

import (
	"bytes"
	"sync"
)

// A Reader converts the documents of one stream or folder to JSON. It is safe for
// concurrent use.
type Reader struct {
	// Lenient accepts duplicate keys. The last one applies, as with sigs.k8s.io/yaml.
	Lenient bool

	limits Limits
	// general is held while the general libraries read a document. They need many times its
	// memory, so only one document is read at a time.
	general sync.Mutex
}

// NewReader returns a reader with the limits.
func NewReader(limits Limits) *Reader {
	return &Reader{limits: limits.withDefaults()}
}

// JSON returns one document as canonical JSON. The error is a *Fault. A lenient reader returns
// the first problem that it accepted as a warning. CRLF line ends are converted to LF first.
func (r *Reader) JSON(raw []byte) (json []byte, warning *Fault, err error) {
	if f := checkEncoding(raw); f != nil {
		return nil, nil, f
	}
	if bytes.IndexByte(raw, '\r') >= 0 {
		raw = bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n"))
	}
	json, f, ok := fastJSON(raw, &r.limits)
	switch {
	case f != nil:
		return nil, nil, f
	case ok:
		return json, nil, nil
	}
	r.general.Lock()
	defer r.general.Unlock()
	return generalJSON(raw, &r.limits, r.Lenient)
}
