package artifact

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// writeInspection writes an inspection as text.
func writeInspection(w io.Writer, r *inspection, everyObject bool) {
	writeFacts(w, r)
	writeEntries(w, r)
	writeLayers(w, r)
	writeDependencies(w, r)
	if everyObject {
		writeObjects(w, r.Content.Objects)
		return
	}
	writeKinds(w, r.Content.Objects)
}

// writeFacts writes the properties of a package.
func writeFacts(w io.Writer, r *inspection) {
	c := r.Content
	facts := [][2]string{
		{"source", r.Source}, {"digest", r.Digest.String()},
		{"package", fmt.Sprintf("%s %s (%s)", c.Kind, c.Name, c.APIVersion)},
		{"platform", r.Manifest.Platform}, {"crossplane", c.Crossplane}, {"capabilities", strings.Join(c.Capabilities, ", ")},
		{"controller image", c.ControllerImage},
	}
	p := c.Presentation
	facts = append(facts, [][2]string{
		{"title", p.Title}, {"description", cmp.Or(p.Description, p.Summary)}, {"category", p.Category},
		{"company", p.Company},
		{"keywords", strings.Join(p.Keywords, ", ")}, {"maintainer", p.Maintainers}, {"owners", p.Owners},
		{"license", p.License},
		{"website", p.Website}, {"source code", p.Source}, {"stated version", p.Version}, {"package type", p.PackageType},
		{"first generation", c.Annotations[xpkg.AnnotationFirstGeneration]},
		{"readme", sizeOf(p.Readme)}, {"icon", iconText(p.Icon)}, {"UI schema", sizeOf(p.UISchema)},
	}...)
	if n := len(c.PermissionRequests); n > 0 {
		facts = append(facts, [2]string{"permissions", wording.Count(n, "rule") + " requested"})
	}
	for _, key := range slices.Sorted(maps.Keys(r.Manifest.Annotations)) {
		facts = append(facts, [2]string{"annotation", key + "=" + r.Manifest.Annotations[key]})
	}
	facts = append(facts, [2]string{"read from", readFrom(c)})
	for _, f := range c.Problems {
		facts = append(facts, [2]string{"problem", f.String()})
	}
	var rows [][]string
	for _, f := range facts {
		if f[1] != "" {
			rows = append(rows, []string{f[0], oneLine(f[1])})
		}
	}
	view.WriteTable(w, nil, rows)
}

// sizeOf returns the size of a long text, and "" for no text.
func sizeOf(text string) string {
	if text == "" {
		return ""
	}
	return terminal.Size(int64(len(text)))
}

// iconText returns the media type and the size of an icon in a data URI.
func iconText(uri string) string {
	mediaType, _, _ := strings.Cut(strings.TrimPrefix(uri, "data:"), ";")
	if uri == "" {
		return ""
	}
	return mediaType + ", " + sizeOf(uri) + " as a data URI"
}

// readFrom describes the source of the content, and whether it is verified.
func readFrom(c contentView) string {
	switch {
	case c.From == fromYAML && c.IndexLayer == indexContradicts:
		return fmt.Sprintf("package.yaml, %s, which differs from the index layer", terminal.Size(c.Size))
	case c.From == fromYAML:
		return "package.yaml, " + terminal.Size(c.Size)
	case c.IndexLayer == indexProven:
		return "the index layer, verified against package.yaml"
	}
	return "the index layer, NOT VERIFIED against package.yaml"
}

// oneLine returns untrusted text as one line of limited length.
func oneLine(s string) string {
	return wording.ClipWords(strings.Join(strings.Fields(terminal.Safe(s)), " "), 200)
}

func writeEntries(w io.Writer, r *inspection) {
	var rows [][]string
	for _, e := range r.Index {
		what := cmp.Or(e.Annotations[oci.AnnotationKey], e.Platform, "any platform")
		rows = append(rows, []string{what, e.Digest.String(), mark(e.Digest == r.Manifest.Digest)})
	}
	section(w, []string{"MANIFEST", "DIGEST", "SHOWN"}, rows)
}

func mark(is bool) string {
	if is {
		return "yes"
	}
	return "-"
}

func writeLayers(w io.Writer, r *inspection) {
	var rows [][]string
	for _, l := range r.Manifest.Layers {
		rows = append(rows, []string{cmp.Or(l.Annotation, "-"), l.Digest.String(), terminal.Size(l.Size)})
	}
	section(w, []string{"LAYER", "DIGEST", "SIZE"}, rows)
}

func writeDependencies(w io.Writer, r *inspection) {
	rows := func(all []dependencyView) (out [][]string) {
		for _, d := range all {
			out = append(out, []string{d.Package, cmp.Or(string(d.Kind), "-"), cmp.Or(d.Constraint, "-")})
		}
		return out
	}
	section(w, []string{"DEPENDENCY", "KIND", "VERSION"}, rows(r.Content.Dependencies))
	section(w, []string{"OPTIONAL DEPENDENCY", "KIND", "VERSION"}, rows(r.Content.OptionalDependencies))
	var kinds [][]string
	for _, k := range r.Content.RequiredKinds {
		kinds = append(kinds, []string{k.WithoutVersion(), cmp.Or(k.Version, "-")})
	}
	section(w, []string{"REQUIRED KIND", "API VERSION"}, kinds)
}

func writeObjects(w io.Writer, objects []objectView) {
	var rows [][]string
	for _, o := range objects {
		rows = append(rows, []string{o.Kind, o.Name, o.APIVersion, terminal.Size(o.Size)})
	}
	section(w, []string{"KIND", "NAME", "API VERSION", "SIZE"}, rows)
}

// writeKinds writes the number of objects of each kind.
func writeKinds(w io.Writer, objects []objectView) {
	type sum struct {
		count int
		size  int64
	}
	sums := map[string]sum{}
	for _, o := range objects {
		s := sums[o.Kind]
		sums[o.Kind] = sum{s.count + 1, s.size + o.Size}
	}
	var rows [][]string
	for _, kind := range slices.Sorted(maps.Keys(sums)) {
		rows = append(rows, []string{kind, fmt.Sprint(sums[kind].count), terminal.Size(sums[kind].size)})
	}
	section(w, []string{"KIND", "OBJECTS", "SIZE"}, rows)
}

// section writes an empty line and a table. It writes nothing if there are no rows.
func section(w io.Writer, header []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintln(w)
	view.WriteTable(w, header, rows)
}
