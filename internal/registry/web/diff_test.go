package web_test

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// checkSeverity checks the order of a page of changes: the most severe ones are first, a section has no change that is
// more severe than its heading, and the added kinds are folded and last.
func (d *document) checkSeverity() {
	d.t.Helper()
	severity := []string{"added", "safe", "care", "breaking"}
	former := len(severity)
	for _, section := range d.elements("section") {
		class := attribute(section, "aria-labelledby")
		level := slices.Index(severity, class)
		if level < 0 || level >= former {
			d.t.Errorf("%s has the section %s at the wrong place", d.path, class)
		}
		former = level
		for n := range section.Descendants() {
			words := strings.Fields(attribute(n, "class"))
			if n.Type == html.ElementNode && slices.Contains(words, "change") &&
				slices.Index(severity, words[len(words)-1]) > max(level, 1) {
				d.t.Errorf("%s has in the section %s the change %s", d.path, class, textOf(n))
			}
			if level == 0 && n.Data == "details" &&
				slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "open" }) {
				d.t.Errorf("%s has the added kinds unfolded", d.path)
			}
		}
	}
}

// TestBreakingChangesAreFirst checks the page of changes of each pair of versions. The pairs of real packages are in
// TestUpgradesOfRealPackagesRender.
func TestBreakingChangesAreFirst(t *testing.T) {
	h := newTestHandler(t)
	versions := []string{"v1.0.0", "v1.1.0", "v2.0.0"}
	for _, from := range versions {
		for _, to := range versions {
			open(t, h, "/diff/registry.example.org/acme/provider-boats/"+from+".."+to).checkSeverity()
		}
	}
}
