package catalog

import (
	"bytes"
	"fmt"

	"github.com/xpkg-dev/xpkg/pkg/catalog/internal/frame"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

const (
	// sealSize is the raw size in bytes from which a journal layer is not extended any more.
	sealSize = 64 << 10
	// maxJournalLayers is the number of journal layers at which a new snapshot is due.
	maxJournalLayers = 24
	// maxJournalLayer is the raw size of a journal layer in bytes. Readers accept all layers together.
	maxJournalLayer = maxJournal / maxJournalLayers
	// snapshotShare is the share of the snapshot that the journal may have, as a divisor.
	snapshotShare = 4
)

// wireEvent is the JSON line of an Event. The kinds are lines of kindLine.
type wireEvent struct {
	Type          EventType         `json:"e"`
	Repository    string            `json:"n,omitempty"`
	Tag           string            `json:"v,omitempty"`
	Digest        oci.Digest        `json:"d,omitzero"`
	Former        oci.Digest        `json:"f,omitzero"`
	At            int64             `json:"t,omitempty"`
	Version       *wireVersion      `json:"version,omitempty"`
	Package       *Package          `json:"package,omitempty"`
	Kinds         []string          `json:"kinds,omitempty"`
	GoneKinds     [][3]string       `json:"goneKinds,omitempty"`
	Histories     []wireKindHistory `json:"histories,omitempty"`
	GoneHistories [][3]string       `json:"goneHistories,omitempty"`
	Text          *wireText         `json:"text,omitempty"`
	Source        *Source           `json:"source,omitempty"`
}

func eventToWire(e *Event) wireEvent {
	w := wireEvent{
		Type: e.Type, Repository: e.Repository, Tag: e.Tag, Digest: e.Digest, Former: e.Former, At: toUnix(e.At),
		Package:   e.Package,
		GoneKinds: keysToWire(e.GoneKinds), GoneHistories: keysToWire(e.GoneHistories), Source: e.Source,
	}
	if e.Version != nil {
		v := toWire(e.Version)
		w.Version = &v
	}
	for i := range e.Kinds {
		w.Kinds = append(w.Kinds, kindLine(&e.Kinds[i], 0))
	}
	for i := range e.Histories {
		w.Histories = append(w.Histories, historyToWire(&e.Histories[i]))
	}
	if e.Text != nil {
		t := textToWire(e.Text)
		w.Text = &t
	}
	return w
}

func keysToWire(keys []KindKey) [][3]string {
	var out [][3]string
	for _, k := range keys {
		out = append(out, [3]string{k.Group, k.Kind, string(k.Role)})
	}
	return out
}

func (w *wireEvent) event() (Event, error) {
	e := Event{
		Type: w.Type, Repository: w.Repository, Tag: w.Tag, Digest: w.Digest, Former: w.Former, At: fromUnix(w.At),
		Package:   w.Package,
		GoneKinds: keysFromWire(w.GoneKinds), GoneHistories: keysFromWire(w.GoneHistories), Source: w.Source,
	}
	if w.Version != nil {
		v, err := w.Version.version()
		if err != nil {
			return Event{}, err
		}
		e.Version = &v
	}
	if e.Package != nil {
		e.Package.Updated = inUTC(e.Package.Updated)
		if err := e.Package.check(); err != nil {
			return Event{}, err
		}
	}
	for _, line := range w.Kinds {
		k, _, err := parseKindLine(line)
		if err != nil {
			return Event{}, err
		}
		k.Repository = w.Repository
		e.Kinds = append(e.Kinds, k)
	}
	for i := range w.Histories {
		h, err := w.Histories[i].history()
		if err != nil {
			return Event{}, err
		}
		e.Histories = append(e.Histories, h)
	}
	if w.Text != nil {
		t := w.Text.text()
		e.Text = &t
	}
	return e, e.check()
}

func keysFromWire(keys [][3]string) []KindKey {
	var out []KindKey
	for _, k := range keys {
		out = append(out, KindKey{k[0], k[1], Role(k[2])})
	}
	return out
}

func encodeEvents(events []Event) []byte {
	var b bytes.Buffer
	for i := range events {
		b.Write(encodeJSON(eventToWire(&events[i])))
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// decodeEvents decodes a journal layer. It returns the raw size too.
func decodeEvents(packed []byte, most int) ([]Event, int, error) {
	content, err := frame.Decode(packed, most)
	if err != nil {
		return nil, 0, err
	}
	var out []Event
	return out, len(content), lines(content, maxLongLine, func(line []byte) error {
		var w wireEvent
		if err := decodeLine(line, &w); err != nil {
			return err
		}
		e, err := w.event()
		if err != nil {
			return err
		}
		out = append(out, e)
		return nil
	})
}

// Append returns the index after a former state and more events, which must lead to the configuration's counts. It is a
// snapshot with a longer journal; of the former state it needs the manifest, and the content of the last journal layer
// if that is not sealed. It returns false when a new snapshot is due, or when the former state cannot be extended: the
// caller then encodes the whole catalog with [Encode].
func Append(former *Manifest, open []byte, config Config, events []Event) (Image, bool, error) {
	m := *former
	m.Journal = m.Journal[:len(m.Journal):len(m.Journal)]
	var known []Event
	if n := len(m.Journal); n > 0 {
		last, raw, err := decodeEvents(open, maxJournal)
		if err != nil {
			return Image{}, false, ErrInvalidIndex.New(err, "cannot read the last journal layer")
		}
		if raw < sealSize {
			known, m.Journal = last, m.Journal[:n-1]
		}
	}
	content := encodeEvents(append(known, events...))
	packed, err := frame.Encode(content)
	if err != nil {
		return Image{}, false, fmt.Errorf("cannot compress the journal: %w", err)
	}
	layer := newBlob(MediaTypeJournal, packed)
	m.Journal = append(m.Journal, layer.Descriptor)
	if m.snapshotIsDue() || len(content) > maxJournalLayer || len(m.Shards) != config.Shards {
		return Image{}, false, nil
	}
	return seal(m, config, []Blob{layer}), true, nil
}

// snapshotIsDue reports whether the journal is too long.
func (m *Manifest) snapshotIsDue() bool {
	var snapshot, journal int64
	for _, d := range m.snapshot() {
		snapshot += d.Size
	}
	for _, d := range m.Journal {
		journal += d.Size
	}
	// A small index is not worth a new snapshot for every few events.
	const small = 32 << 10
	return len(m.Journal) > maxJournalLayers || journal > max(snapshot/snapshotShare, small)
}
