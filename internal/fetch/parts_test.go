package fetch_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// The sizes from which packages are parsed in parts: all of them, and none.
const (
	inParts = 1
	asWhole = 1 << 40
)

// readStored reads a package that the store has, and returns its derived files by name.
func readStored(t *testing.T, stream string, from int64, opts store.Options) (*xpkg.Package, map[string][]byte, error) {
	t.Helper()
	image, err := image.Build(t.Context(), image.Input{PackageYAML: []byte(stream)})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "store")
	contents, err := store.Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer contents.Close()
	if err := contents.Add(t.Context(), image, oci.Limits{}); err != nil {
		t.Fatal(err)
	}
	source := fetch.NewSource(fetch.Options{Store: contents, PartsFrom: from})
	defer source.Close()
	pkg, err := source.Read(t.Context(), fetch.Origin{}, image.Digest(), false)
	derived := map[string][]byte{}
	walkErr := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.Contains(path, "blobs") {
			return err
		}
		if filepath.Base(filepath.Dir(path)) == "tmp" {
			t.Errorf("left behind %s", path)
		}
		raw, err := os.ReadFile(path)
		derived[filepath.Base(path)] = raw
		return err
	})
	if walkErr != nil {
		t.Fatal(walkErr)
	}
	return pkg, derived, err
}

// A package that is parsed in parts has the same stored content, and the same findings to the letter, as one that is
// parsed as a whole.
func TestParsingInPartsChangesNothing(t *testing.T) {
	second := "---\n" + strings.ReplaceAll(strings.SplitN(stream, "---\n", 2)[1], "hing", "hong")
	for name, text := range map[string]string{
		"a package": stream + second,
		"a warning": stream +
			"---\napiVersion: admissionregistration.k8s.io/v1\nkind: AdmissionWebhookConfiguration\nmetadata: {name: hook}\n",
		"an invalid schema":    stream + strings.Replace(second, "type: object", "type: nonsense", 1),
		"a key twice":          stream + strings.Replace(second, "scope: Cluster", "scope: Namespaced\n  scope: Cluster", 1),
		"an object twice":      stream + second + second,
		"no metadata":          second,
		"invalid YAML":         stream + "---\na: [\n" + second,
		"many things":          many(50, 1_000),
		"a name on the wrong":  stream + strings.Replace(second, "name: t", "name: x", 1),
		"only the metadata":    strings.SplitN(stream, "---\n", 2)[0],
		"metadata at the end ": second + "---\n" + strings.SplitN(stream, "---\n", 2)[0],
	} {
		t.Run(name, func(t *testing.T) {
			want, wantFiles, wantErr := readStored(t, text, asWhole, store.Options{})
			got, files, err := readStored(t, text, inParts, store.Options{})
			if wantErr != nil || err != nil {
				if err == nil || wantErr == nil || err.Error() != wantErr.Error() ||
					len(xpkg.Findings(err)) != len(xpkg.Findings(wantErr)) {
					t.Fatalf("%v, want %v", err, wantErr)
				}
				return
			}
			if len(got.Objects) != len(want.Objects) || len(got.Findings) != len(want.Findings) {
				t.Errorf("%d objects and %v, want %d and %v", len(got.Objects), got.Findings, len(want.Objects), want.Findings)
			}
			if len(files) != len(wantFiles) {
				t.Errorf("%d files, want %d", len(files), len(wantFiles))
			}
			for name, raw := range wantFiles {
				if !bytes.Equal(files[name], raw) {
					t.Errorf("%s differs", name)
				}
			}
		})
	}
}

// The space for the objects of a package without findings is reserved before they are known, and they are written once.
func TestPackageWithoutFindingsIsParsedInParts(t *testing.T) {
	var needs []int64
	_, _, err := readStored(t,
		stream, inParts, store.Options{MakeRoom: func(_ context.Context, n store.Need, reserve func() error) error {
			if n.Derived {
				needs = append(needs, n.Bytes)
			}
			return reserve()
		}})
	if err != nil {
		t.Fatal(err)
	}
	if len(needs) != 2 || needs[0] != int64(sha256.Size+len(stream)) {
		t.Errorf("the reservations %d, want one for the stream and one for the index", needs)
	}
}

// A package can be read although its objects cannot be stored.
func TestParsingInPartsNeedsNoSpace(t *testing.T) {
	full := errors.New("no space")
	noRoom := store.Options{MakeRoom: func(_ context.Context, n store.Need, reserve func() error) error {
		if n.Derived {
			return full
		}
		return reserve()
	}}
	pkg, _, err := readStored(t, stream, inParts, noRoom)
	if err != nil {
		t.Fatal(err)
	}
	check(t, pkg)
}
