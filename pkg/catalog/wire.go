package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// wireVersion is the JSON line of a Version.
type wireVersion struct {
	Tag          string           `json:"v"`
	Digest       oci.Digest       `json:"d,omitzero"`
	Created      int64            `json:"t,omitempty"`
	Crossplane   string           `json:"x,omitempty"`
	Dependencies []wireDependency `json:"r,omitempty"`
	Status       *Status          `json:"s,omitempty"`
	Signatures   []string         `json:"g,omitempty"`
	IndexLayer   oci.Digest       `json:"i,omitzero"`
	Kinds        int              `json:"n,omitempty"`
	Error        *IndexError      `json:"e,omitempty"`
}

type wireDependency struct {
	Package    string `json:"p"`
	Constraint string `json:"c,omitempty"`
	Optional   bool   `json:"o,omitempty"`
}

func toWire(v *Version) wireVersion {
	w := wireVersion{
		Tag: v.Tag, Digest: v.Digest, Created: toUnix(v.Created), Crossplane: v.Crossplane, Status: v.Status,
		Signatures: v.Signatures,
		IndexLayer: v.IndexLayer, Kinds: v.Kinds, Error: v.Error,
	}
	for _, d := range v.Dependencies {
		w.Dependencies = append(w.Dependencies, wireDependency{d.Package, d.Constraint, d.Optional})
	}
	return w
}

func (w *wireVersion) version() (Version, error) {
	v := Version{
		Tag: w.Tag, Digest: w.Digest, Created: fromUnix(w.Created), Crossplane: w.Crossplane, Status: w.Status,
		Signatures: w.Signatures,
		IndexLayer: w.IndexLayer, Kinds: w.Kinds, Error: w.Error,
	}
	if v.Status != nil {
		v.Status.Since = inUTC(v.Status.Since)
	}
	for _, d := range w.Dependencies {
		v.Dependencies = append(v.Dependencies, dependency.Dependency{
			Package: d.Package, Constraint: d.Constraint, Optional: d.Optional,
		})
	}
	switch {
	case !oci.ValidTag(v.Tag):
		return Version{}, fmt.Errorf("%.150q is not a tag", v.Tag)
	case len(v.Dependencies) > maxDependencies || len(v.Crossplane) > maxConstraint || v.Kinds < 0 || v.Kinds > maxKinds:
		return Version{}, errors.New("a version has too many dependencies or too long constraints")
	}
	return v, v.Status.checkRow()
}

// toUnix returns the seconds since 1970, and 0 for no time.
func toUnix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

func fromUnix(s int64) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return inUTC(time.Unix(s, 0))
}

// inUTC returns a time in UTC, and no time for one that JSON cannot represent in UTC. Authors state any time, and any
// offset of it.
func inUTC(t time.Time) time.Time {
	if t = t.UTC(); t.Year() < 0 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}

// wireKindHistory is the JSON line of a KindHistory. An interval is a list of API version, since and, unless the API
// version is still served, until.
type wireKindHistory struct {
	Group     string     `json:"g"`
	Kind      string     `json:"k"`
	Intervals [][]string `json:"a"`
}

func historyToWire(k *KindHistory) wireKindHistory {
	w := wireKindHistory{Group: k.Group, Kind: k.Kind}
	for _, in := range k.Intervals {
		i := []string{in.Version, in.Since, in.Until}
		if in.Until == "" {
			i = i[:2]
		}
		w.Intervals = append(w.Intervals, i)
	}
	return w
}

func (w *wireKindHistory) history() (KindHistory, error) {
	k := KindHistory{Group: w.Group, Kind: w.Kind}
	if !validKind(w.Kind) || !validGroup(w.Group) {
		return KindHistory{}, fmt.Errorf("the names of kind %.100q of group %.100q are not valid", w.Kind, w.Group)
	}
	for _, i := range w.Intervals {
		if len(i) != 2 && len(i) != 3 {
			return KindHistory{}, errors.New("an interval has neither two nor three parts")
		}
		in := Interval{Version: i[0], Since: i[1]}
		if len(i) == 3 {
			in.Until = i[2]
		}
		if !validLabel(in.Version) || !oci.ValidTag(in.Since) || len(i) == 3 && !oci.ValidTag(in.Until) {
			return KindHistory{}, fmt.Errorf("the interval %.200q is not valid", i)
		}
		k.Intervals = append(k.Intervals, in)
	}
	return k, nil
}

// kindLine returns the line of a kind: kind, group, plural, singular and short names, scope, served API versions, role,
// position of the package, since. Regular plurals and singulars are left out.
func kindLine(k *Kind, position int) string {
	plural, singular := k.Plural, k.Singular
	if plural == strings.ToLower(k.Kind)+"s" {
		plural = ""
	}
	if singular == strings.ToLower(k.Kind) {
		singular = ""
	}
	names := strings.Join(append([]string{singular}, k.ShortNames...), ",")
	scope := ""
	if k.Scope != "" {
		scope = k.Scope[:1]
	}
	return strings.Join([]string{
		k.Kind, k.Group, plural, names, scope, strings.Join(k.Served, ","), string(k.Role), strconv.Itoa(position), k.Since,
	}, "\t")
}

// parseKindLine parses a line of kindLine. It returns the position of the package.
func parseKindLine(line string) (Kind, int, error) {
	f := strings.Split(line, "\t")
	if len(f) != 9 {
		return Kind{}, 0, fmt.Errorf("the line of a kind has %d fields, want 9", len(f))
	}
	k := Kind{Kind: f[0], Group: f[1], Plural: f[2], Role: Role(f[6]), Since: f[8]}
	if k.Plural == "" {
		k.Plural = strings.ToLower(k.Kind) + "s"
	}
	names := strings.Split(f[3], ",")
	if k.Singular = names[0]; k.Singular == "" {
		k.Singular = strings.ToLower(k.Kind)
	}
	if len(names) > 1 {
		k.ShortNames = names[1:]
	}
	switch f[4] {
	case "N":
		k.Scope = "Namespaced"
	case "C":
		k.Scope = "Cluster"
	case "":
	default:
		return Kind{}, 0, fmt.Errorf("unknown scope %.20q", f[4])
	}
	if f[5] != "" {
		k.Served = strings.Split(f[5], ",")
	}
	position, err := strconv.Atoi(f[7])
	if err != nil || position < 0 || !k.valid() || k.Since != "" && !oci.ValidTag(k.Since) ||
		kindLine(&k, position) != line {
		return Kind{}, 0, fmt.Errorf("the line %.200q of a kind is not valid", line)
	}
	return k, position, nil
}

// lines calls visit for each line of NDJSON, without the line feed. A line has at most most bytes.
func lines(content []byte, most int, visit func(line []byte) error) error {
	for len(content) > 0 {
		line, rest, ended := bytes.Cut(content, []byte("\n"))
		if !ended || len(line) > most {
			return errors.New("a line is too long, or not complete")
		}
		if err := visit(line); err != nil {
			return err
		}
		content = rest
	}
	return nil
}

// decodeLine decodes one JSON value. Unknown fields are ignored, so that later versions can add some.
func decodeLine(line []byte, into any) error { return json.Unmarshal(line, into) }

// encodeJSON returns compact JSON without HTML escapes. Fields are in the order of the type.
func encodeJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil // The types of this package can be encoded.
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// decodeStrict decodes one JSON value, without unknown fields and without text after it.
func decodeStrict(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text after the end of the value")
	}
	return nil
}
