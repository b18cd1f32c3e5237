package catalog

import (
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

func TestTitles(t *testing.T) {
	for _, c := range []struct {
		annotations map[string]string
		want        string
	}{
		{map[string]string{annotationTitle: "Boats"}, "Boats"},
		{map[string]string{xpkg.AnnotationTitle: "Ships"}, "Ships"}, // The title of a package of the first generation.
		{map[string]string{annotationTitle: "Boats", xpkg.AnnotationTitle: "Ships"}, "Boats"},
		{nil, ""},
	} {
		if got := Describe("registry.example.org/acme/boats", xpkg.Meta{Annotations: c.annotations}).Title; got != c.want {
			t.Errorf("%v: the title is %q, want %q", c.annotations, got, c.want)
		}
	}
}

// TestSummaryIsASentence compares the summary of a catalog with the one of the metadata: both are what the author calls
// the summary, or else the first sentence of the description, which can have several lines.
func TestSummaryIsASentence(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("Größe ", 100))
	for _, c := range []struct{ summary, description, want string }{
		{"", "\nA platform for clusters, e.g. EKS,\nand databases v1.2.\nIt is a start.\n", "A platform for clusters, e.g. EKS, and databases v1.2."},
		{"", "# Boats\n\nManages boats.", "Boats"},
		{"Of the\nauthor. All of it.", "A description.", "Of the author. All of it."},
		{long, "", strings.TrimSpace(strings.Repeat("Größe ", 37)) + "…"},
		{"", long, strings.TrimSpace(strings.Repeat("Größe ", 37)) + "…"},
	} {
		m := xpkg.Meta{Annotations: map[string]string{
			xpkg.AnnotationSummary: c.summary, xpkg.AnnotationDescription: c.description,
		}}
		if got := Describe("", m).Summary; got != c.want {
			t.Errorf("the summary of %+v is %q", c, got)
		}
		if got := m.Presentation().Summary; c.summary == "" && got != c.want {
			t.Errorf("the summary in the metadata of %+v is %q", c, got)
		}
	}
}
