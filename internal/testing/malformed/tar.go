package malformed

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

const block = 512

var memberTypes = map[string]byte{
	"": '0', "file": '0', "hardlink": '1', "symlink": '2', "char": '3', "block": '4', "dir": '5', "fifo": '6',
	"sparse": 'S',
}

// writeTar returns a tar of members. It does not use a library, because a library would refuse to
// write malformed headers.
func writeTar(members []Member) ([]byte, error) {
	var out bytes.Buffer
	for _, m := range members {
		for n := range max(1, m.Repeat) {
			one := m
			if m.Repeat > 1 {
				one.Name = m.Name + strconv.Itoa(n)
			}
			if err := one.write(&out); err != nil {
				return nil, err
			}
		}
	}
	out.Write(make([]byte, 2*block))
	return out.Bytes(), nil
}

func (m Member) write(out *bytes.Buffer) error {
	kind, ok := memberTypes[m.Type]
	if !ok {
		return fmt.Errorf("no type of member %q", m.Type)
	}
	name, err := m.name()
	if err != nil {
		return err
	}
	pax := maps.Clone(m.PAX)
	if pax == nil {
		pax = map[string]string{}
	}
	if m.PAXLength > 0 {
		pax["comment"] = strings.Repeat("x", m.PAXLength)
	}
	if len(name) > 100 {
		pax["path"], name = name, name[:100]
	}
	if len(pax) > 0 {
		records := paxRecords(pax)
		writeMember(out, "PaxHeaders", 'x', "", strconv.Itoa(len(records)), []byte(records))
	}
	content := []byte(m.Content)
	if m.Good {
		content = []byte(Default)
	}
	if m.Zeros > 0 {
		content = make([]byte, m.Zeros)
	}
	size := m.Size
	if size == "" {
		size = strconv.Itoa(len(content))
	}
	writeMember(out, name, kind, m.Link, size, content)
	return nil
}

func (m Member) name() (string, error) {
	if m.NameLength > 0 {
		return strings.Repeat("n", m.NameLength), nil
	}
	if m.NameHex != "" {
		raw, err := hex.DecodeString(m.NameHex)
		return string(raw), err
	}
	return m.Name, nil
}

// writeMember writes a ustar header and the content, padded to whole blocks.
func writeMember(out *bytes.Buffer, name string, kind byte, link, size string, content []byte) {
	var h [block]byte
	copy(h[0:100], name)
	copy(h[100:], "0000644\x00")
	copy(h[108:], "0000000\x00")
	copy(h[116:], "0000000\x00")
	copy(h[124:136], sizeField(size))
	copy(h[136:], "00000000000\x00")
	h[156] = kind
	copy(h[157:257], link)
	copy(h[257:], "ustar\x0000")
	if kind == 'S' {
		// The old GNU format: one region, and the real size.
		copy(h[257:], "ustar  \x00")
		copy(h[386:], "00000000000\x0000000000005\x00")
		copy(h[483:], "00000000005\x00")
	}
	copy(h[148:156], "        ")
	sum := 0
	for _, b := range h {
		sum += int(b)
	}
	copy(h[148:156], fmt.Sprintf("%06o\x00 ", sum))
	out.Write(h[:])
	out.Write(content)
	if rest := len(content) % block; rest != 0 {
		out.Write(make([]byte, block-rest))
	}
}

func sizeField(size string) []byte {
	switch size {
	case "max":
		return append([]byte{0x80, 0, 0, 0}, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
	case "negative":
		return bytes.Repeat([]byte{0xff}, 12)
	}
	if n, err := strconv.ParseInt(size, 10, 64); err == nil {
		return fmt.Appendf(nil, "%011o\x00", n)
	}
	return []byte(size)
}

// paxRecords writes "length key=value\n" for each record; the length counts
// itself.
func paxRecords(records map[string]string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(records)) {
		rest := " " + k + "=" + records[k] + "\n"
		length := len(rest) + 1
		for len(strconv.Itoa(length))+len(rest) != length {
			length++
		}
		b.WriteString(strconv.Itoa(length) + rest)
	}
	return b.String()
}
