// Package webtest provides packages for tests of the pages.
package webtest

import (
	"embed"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/xpkg-dev/xpkg/internal/registry/web/folder"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/catalog/docs"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

//go:embed packages.txtar
var files embed.FS

// Registry is the registry of the packages.
const Registry = "registry.example.org"

// Publisher is the verified publisher of most packages.
const Publisher = "Acme Marine <platform@acme.example>"

// Packages returns the packages of the file packages.txtar: a Provider in three versions, a Provider with one of its
// kinds, a Function, and a Configuration that depends on both.
func Packages(t testing.TB) []folder.Version {
	t.Helper()
	text, err := files.ReadFile("packages.txtar")
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]string{}
	for _, f := range txtar.Parse(text).Files {
		parts[f.Name] = string(f.Data)
	}
	boats := parts["boats.yaml"]
	older := strings.NewReplacer(
		"                  insured:\n                    type: boolean\n                    default: false\n                    description: Whether an insurance covers the boat.\n",
		"",
		"maxLength: 40", "maxLength: 63", "enum: [sail, motor, electric]", "enum: [sail, motor, steam]",
		"version: \">=v1.20.0\"", "version: \">=v1.14.0\"")
	day := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	versions := []folder.Version{
		Version(t, "acme/provider-boats", "v1.0.0", day, strings.Replace(older.Replace(boats), parts["berth.yaml"], "", 1)),
		Version(t, "acme/provider-boats", "v1.1.0", day.AddDate(0, 2, 9), older.Replace(boats)+parts["berth.yaml"]),
		Version(t, "acme/provider-boats", "v2.0.0", day.AddDate(0, 6, 20), boats+parts["berth.yaml"]+parts["crew.yaml"]),
		Version(t, "harbours/provider-docks", "v0.3.1", day.AddDate(0, 4, 1), parts["docks.yaml"]+parts["berth.yaml"]),
		Version(t, "acme/function-rigging", "v0.8.2", day.AddDate(0, 5, 3), parts["rigging.yaml"]),
		Version(t, "acme/configuration-harbour", "v0.4.0", day.AddDate(0, 6, 24), parts["harbour.yaml"]),
		Version(t, "sailing/provider-wind", "v0.1.0", day.AddDate(0, -14, 0), parts["wind.yaml"]),
	}
	versions[1].Status = &catalog.Status{
		State: catalog.Yanked, Reason: catalog.Broken, Message: "Boats without a crew are deleted.", ReplacedBy: "v2.0.0",
		Since: day.AddDate(0, 3, 0),
	}
	versions[2].Signatures = []string{"https://github.com/acme/provider-boats/.github/workflows/release.yml"}
	versions[2].ReleaseNotes = "- Boats can be **insured**.\n- New kind `Crew`.\n"
	versions[2].Icon = []byte(parts["boats.svg"])
	for i := range versions {
		versions[i].Examples = []docs.Example{{Name: "boat.yaml", YAML: parts["boat-example.yaml"]}, {
			Name: "harbour.yaml", YAML: parts["harbour-example.yaml"],
		}}
	}
	return versions
}

// Version returns a version from a package.yaml.
func Version(t testing.TB, repository, tag string, created time.Time, stream string) folder.Version {
	t.Helper()
	pkg, err := xpkg.Read([]byte(stream), xpkg.ReadOptions{})
	if err != nil {
		t.Fatalf("%s:%s: %v", repository, tag, err)
	}
	return folder.Version{Repository: Registry + "/" +
		repository, Tag: tag, Created: created, Digest: oci.DigestOf([]byte(stream)), Package: pkg}
}

// Options returns the options of a source with the packages.
func Options() folder.Options {
	return folder.Options{Name: Registry + "/index", Verified: map[string]string{Publisher: "signs its packages"}}
}
