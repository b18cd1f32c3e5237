package location

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
)

// parseLayout parses DIR, DIR:TAG and DIR@DIGEST, like skopeo and crane. The name of a folder
// with a colon must end with a slash, as in a:b/.
func parseLayout(s string) (Location, error) {
	l := Location{Kind: Layout, Path: s}
	volume := len(filepath.VolumeName(s))
	if dir, digest, ok := cutLast(s, "@"); ok && strings.Contains(digest, ":") && !strings.Contains(digest, "/") {
		d, err := oci.ParseDigest(digest)
		if err != nil {
			return Location{}, err
		}
		l.Path, l.Digest = dir, d
	} else if dir, tag, ok := cutLast(s[volume:], ":"); ok && oci.ValidTag(tag) {
		l.Path, l.Tag = s[:volume]+dir, tag
	}
	if l.Path == "" {
		return Location{}, terminal.ErrUsage.New(nil, "%s contains no folder", LayoutPrefix+s)
	}
	return l, nil
}

// cutLast splits a string around the last separator.
func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}

// openLayout opens the image of an OCI layout that a location selects. Without a tag or a digest
// the layout contains one image, which can be an index.
func openLayout(l Location, limits oci.Limits) (*archive.Archive, error) {
	entries, err := archive.Entries(l.Path, limits)
	if err != nil {
		return nil, err
	}
	var found []archive.Entry
	for _, e := range entries {
		if l.selects(e) && !slices.ContainsFunc(found, func(f archive.Entry) bool { return f.Digest == e.Digest }) {
			found = append(found, e)
		}
	}
	switch len(found) {
	case 0:
		return nil, archive.ErrArchiveNotFound.New(nil, "%s contains no such image", l).WithDo("%s", chooseEntry(l, entries))
	case 1:
		return archive.OpenEntry(l.Path, found[0])
	}
	return nil, archive.ErrArchiveNotFound.New(nil, "%s selects %s", l, wording.Count(len(found), "image")).
		WithDo("%s", chooseEntry(l, found))
}

// selects reports whether a location selects an entry of its layout. A tag selects an entry with that name, and an
// entry whose name is a reference with that tag.
func (p Location) selects(e archive.Entry) bool {
	switch {
	case !p.Digest.IsZero():
		return e.Digest == p.Digest
	case p.Tag != "":
		return e.Name == p.Tag || strings.HasSuffix(e.Name, ":"+p.Tag)
	}
	return true
}

// isCollection reports whether a layout contains images under several names, and not the
// manifests of one image for several platforms.
func isCollection(entries []archive.Entry) bool {
	names := map[string]bool{}
	for _, e := range entries {
		names[e.Name] = true
	}
	return len(names) > 1
}

// chooseEntry returns the advice to select one of the entries.
func chooseEntry(l Location, entries []archive.Entry) string {
	if len(entries) == 0 {
		return "Use a layout that contains an image."
	}
	var lines []string
	for _, e := range entries {
		one := Location{Kind: Layout, Path: l.Path, Digest: e.Digest}
		lines = append(lines, wording.ShellWord(one.String())+" ("+cmp.Or(e.Name, "without a name")+")")
	}
	const most = 10
	text := strings.Join(lines[:min(most, len(lines))], ", ")
	if len(lines) > most {
		text += ", …"
	}
	return "Select one of these: " + text + "."
}
