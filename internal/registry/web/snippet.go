package web

import (
	"fmt"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// A snippet is text for a terminal or a file.
type snippet struct {
	// Title names the use, and Note adds a sentence.
	Title, Note string
	Text        string
	// YAML reports that the text is YAML, which gets colors.
	YAML bool
}

// An apiServerCost is the cost that the API server of a control plane has for each kind, as measured with real
// packages.
const (
	leastMilliseconds, mostMilliseconds = 140, 310
	leastMegabytes, mostMegabytes       = 3, 8
)

// A cost is the cost of a package for an API server.
type cost struct {
	// Kinds is the number of kinds that the API server has to serve.
	Kinds int
	// CPU and Memory are ranges with units.
	CPU, Memory string
}

// costOf returns the cost of kinds. Inputs of Functions are not installed.
func costOf(kinds []catalog.Kind) cost {
	n := 0
	for _, k := range kinds {
		if k.Role != catalog.Input && k.Role != catalog.Elsewhere {
			n++
		}
	}
	return cost{n, interval(float64(n*leastMilliseconds)/1000, float64(n*mostMilliseconds)/1000) + " s", memory(n)}
}

func memory(kinds int) string {
	least, most := kinds*leastMegabytes, kinds*mostMegabytes
	if most >= 1000 {
		return interval(float64(least)/1000, float64(most)/1000) + " GB"
	}
	return fmt.Sprintf("%d–%d MB", least, most)
}

// interval returns a range with the precision of an estimate.
func interval(least, most float64) string {
	format := "%.1f–%.1f"
	if least >= 10 {
		format = "%.0f–%.0f"
	}
	return fmt.Sprintf(format, least, most)
}

// installSnippets returns the ways to install a version.
func installSnippets(at release, kind xpkg.Kind) []snippet {
	repository, tag, digest := at.Repository(), at.Tag, at.Digest
	reference := repository + ":" + tag
	if digest.IsZero() {
		return []snippet{{Title: "Command", Text: installCommand(kind, reference)}}
	}
	lock := lockfile.Encode(lockfile.File{
		Roots: []dependency.Root{{Package: repository, Constraint: tag, Exact: true}},
		Packages: []lockfile.Package{{
			Repository: repository, Version: tag, Digest: digest, Kind: kind, Dependencies: at.Dependencies,
		}},
	})
	name := objectName(repository)
	return []snippet{
		{Title: "Command", Text: installCommand(kind, reference)},
		{Title: "Manifest", YAML: true, Text: fmt.Sprintf(
			"apiVersion: pkg.crossplane.io/v1\nkind: %s\nmetadata:\n  name: %s\nspec:\n  package: %s\n", manifestKind(kind),
			name, reference,
		)},
		{Title: "By digest", Note: "The content cannot change, also if the tag moves.", YAML: true,
			Text: fmt.Sprintf(
				"apiVersion: pkg.crossplane.io/v1\nkind: %s\nmetadata:\n  name: %s\nspec:\n  package: %s@%s\n", manifestKind(kind),
				name, repository, digest,
			)},
		{Title: "Lock file", Note: "The entry of this package. xpkg resolve writes the file with all dependencies.", YAML: true, Text: lockEntry(
			string(lock),
		)},
	}
}

// lockEntry returns the entry of a package in a lock file.
func lockEntry(lock string) string {
	if i := strings.Index(lock, "packages:"); i >= 0 {
		return lock[i:]
	}
	return lock
}

func installCommand(kind xpkg.Kind, reference string) string {
	return "xpkg install " + strings.ToLower(manifestKind(kind)) + " " + wording.ShellWord(reference)
}

var notInName = lazyregexp.New(`[^a-z0-9-]+`)

// objectName returns the name of the object that installs a package, as `xpkg install` gives it: with another name, the
// manifest and the command would install the package twice.
func objectName(repository string) string {
	ref, err := oci.ParseReference(repository, oci.ParseOptions{AllowUntagged: true})
	if err != nil {
		return fileName(repository)
	}
	return oci.ToDNSLabel(ref.Repository)
}

// fileName returns a name for a file with a package.
func fileName(repository string) string {
	return strings.Trim(notInName().ReplaceAllString(lastSegment(repository), "-"), "-")
}

// trustSnippets returns the commands that verify a version without this server.
func trustSnippets(at release) []snippet {
	if at.Digest.IsZero() {
		return nil
	}
	pinned := wording.ShellWord(at.Repository() + "@" + at.Digest.String())
	file := fileName(at.Repository()) + ".xpkg"
	out := []snippet{
		{Title: "Content", Note: "The digest identifies the whole content: every byte is compared with it when it is pulled. The second command needs no network.",
			Text: "xpkg pull " + pinned + " -o " + file + "\nxpkg inspect " + file},
		{Title: "Tag", Note: "A tag is a claim of the registry. This shows the digest that it has now.", Text: "xpkg inspect " +
			wording.ShellWord(at.Repository()+":"+at.Tag)},
	}
	if len(at.Signatures) > 0 {
		out = append(out, snippet{
			Title: "Signatures", Note: "The signatures that the index lists are claims until a client verifies them.",
			Text: "cosign verify --offline " + pinned +
				" --certificate-identity-regexp='.*' --certificate-oidc-issuer-regexp='.*'",
		})
	}
	return out
}
