package yamldoc

import (
	"bytes"
	"errors"
	"io"
)

// defaultPart is the size of the parts of a stream in bytes.
const defaultPart = 4 << 20

// A Stream splits a stream into its documents while it is read, so that only a part of it is in memory. Use
// [Reader.Stream] to create one.
type Stream struct {
	in       io.Reader
	limits   *Limits
	splitter *splitter
	part     int

	rest  []byte // the text after the last part; it begins with a marker
	read  int    // number of bytes that were read
	begun bool
	done  bool
}

// Stream returns a stream that reads in.
func (r *Reader) Stream(in io.Reader) *Stream {
	return &Stream{in: in, limits: &r.limits, splitter: newSplitter(&r.limits), part: defaultPart}
}

// Next returns the documents of the next part, as [Reader.Split] returns them: at most a few MiB, unless a single
// document is longer. The parts end between documents, and can have no documents with content. At the end of the
// stream, Next returns io.EOF. Other errors are those of the underlying reader, or a *Fault as of Split.
func (s *Stream) Next() ([]Document, error) {
	if s.done {
		return nil, io.EOF
	}
	part, err := s.nextPart()
	if err != nil {
		return nil, err
	}
	if !s.begun {
		s.begun = true
		var f *Fault
		if part, f = trimBOM(part); f != nil {
			return nil, f
		}
	}
	if f := s.splitter.run(part, s.done); f != nil {
		return nil, f
	}
	return s.splitter.docs, nil
}

// nextPart reads up to the last marker within the size of a part, or further if there is none. It sets done at the end
// of the stream.
func (s *Stream) nextPart() ([]byte, error) {
	part := make([]byte, len(s.rest), max(s.part, 2*len(s.rest)))
	copy(part, s.rest)
	for {
		filled, err := s.fill(part)
		part = filled
		if errors.Is(err, io.EOF) {
			s.done, s.rest = true, nil
			return part, nil
		}
		if err != nil {
			return nil, err
		}
		if at := lastMarker(part); at > 0 {
			s.rest = part[at:]
			return part[:at], nil
		}
		part = append(make([]byte, 0, 2*cap(part)), part...)
	}
}

// fill reads into the unused capacity of a part. It returns io.EOF at the end of the stream.
func (s *Stream) fill(part []byte) ([]byte, error) {
	n, err := io.ReadFull(s.in, part[len(part):cap(part)])
	s.read += n
	if s.read > s.limits.StreamBytes {
		return nil, Exceeded(ErrStreamTooLarge, s.limits.Fields()[0], 0)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return part[:len(part)+n], err
}

// lastMarker returns the offset of the last line that starts a document after the first line, and 0 if there is none.
// The end of the text is not the end of its last line.
func lastMarker(text []byte) int {
	for end := len(text); ; {
		at := bytes.LastIndex(text[:end], []byte("\n---"))
		if at < 0 {
			return 0
		}
		// The character after the marker decides, and may not be read yet.
		if line := text[at+1:]; len(line) > len("---") && IsMarker(line, "---") {
			return at + 1
		}
		end = at
	}
}
