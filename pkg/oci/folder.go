package oci

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/oci/internal/tarfile"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/text"
)

// RegistryFolder is the folder of a package of the first generation in the root of its image.
const RegistryFolder = ".registry"

// maxFolderBytes bounds the files of RegistryFolder together. The largest known package has 2 MiB.
const maxFolderBytes = 32 << 20

// ReadRegistryFolder returns the files of the folder .registry in the file system of all layers, by their paths below
// the folder. Files for which keep returns false are not read. The result is empty for an image without the folder, and
// for one with an annotated layer.
//
// It verifies the digest of each layer before it parses the layer, and applies the whiteouts of the layers (OCI image
// specification, "Applying Changesets"). It fails with ErrNotRegularFile for a link or a device in the folder: a
// package of which a part is elsewhere is not read partially. If reserve is not nil, it is called with the size of the
// memory that the files can take, before a layer is opened.
func ReadRegistryFolder(
	ctx context.Context, a Artifact, m Manifest, limits Limits, keep func(path string) bool,
	reserve func(bytes int64) error,
) (map[string][]byte, error) {
	if m.Base != nil {
		return nil, nil
	}
	limits = limits.WithDefaults()
	f := &folderReader{
		keep: keep, limits: limits, left: min(maxFolderBytes, limits.Package), files: map[string][]byte{},
		hidden: map[string]bool{},
	}
	if reserve != nil {
		if err := reserve(f.left); err != nil {
			return nil, err
		}
	}
	budget := newBudget(m, limits)
	for _, layer := range m.contentLayers() {
		if err := budget.spend(layer); err != nil {
			return nil, err
		}
		if f.hidden["."] {
			break
		}
		most := newOutputLimit(layer, limits)
		if _, err := withLayer(
			ctx, a, layer, limits, func(r io.Reader) (layerScan, error) { return layerScan{}, f.layer(r, most) },
		); err != nil {
			return nil, err
		}
	}
	return f.files, nil
}

// folderReader reads the layers of an image from the top.
type folderReader struct {
	keep   func(path string) bool
	limits Limits
	// left is the number of bytes that further files can have.
	left  int64
	files map[string][]byte
	// hidden contains the paths that the layers read so far replace or remove, with everything below them.
	hidden map[string]bool
}

// layer reads the tar of one layer, which hides paths of the layers below it.
func (f *folderReader) layer(r io.Reader, most outputLimit) error {
	var counter tarfile.Counter
	replaced := map[string]bool{}
	sniffer := &tarfile.Sniffer{R: r}
	tr := tar.NewReader(sniffer)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return TarError(err, counter.Entries, sniffer.IsTar())
		}
		counter.Add(h)
		if err := CheckTar(counter.Entries, counter.Headers, f.limits); err != nil {
			return err
		}
		if h.Size > most.bytes {
			return ErrDecompressionLimit.New(
				nil, "the entry %q declares %d bytes, but its layer can have at most %d (%s)", text.Clip(h.Name), h.Size,
				most.bytes, most.flag,
			)
		}
		if err := f.entry(h, tr, replaced, counter.Entries); err != nil {
			return err
		}
	}
	for p := range replaced {
		f.hidden[p] = true
	}
	return onlyZeros(r)
}

// entry reads one entry of a layer, and records the path that it hides in lower layers.
func (f *folderReader) entry(h *tar.Header, r io.Reader, replaced map[string]bool, number int) error {
	name := cleanName(h.Name)
	if name == "" {
		return nil
	}
	if hides, ok := whiteoutTarget(name); ok {
		if hides != "" && (hides == "." || onPath(hides)) {
			replaced[hides] = true
		}
		return nil
	}
	if h.Typeflag == tar.TypeDir || !onPath(name) || f.isHidden(name) {
		return nil
	}
	if replaced[name] && name != RegistryFolder {
		if _, read := f.files[strings.TrimPrefix(name, RegistryFolder+"/")]; read {
			return ErrDuplicateEntry.New(nil, "the layer contains %q twice", text.Clip(name))
		}
	}
	replaced[name] = true
	if kind := tarfile.Irregular(h); kind != "" || name == RegistryFolder {
		if kind == "" {
			kind = "regular file"
		}
		return ErrNotRegularFile.New(
			nil, "%q is a %s, which a package of the first generation cannot contain", text.Clip(name), kind,
		).
			WithDo("Build the package again with regular files in %s.", RegistryFolder)
	}
	below := strings.TrimPrefix(name, RegistryFolder+"/")
	if !f.keep(below) {
		return nil
	}
	if h.Size > f.left {
		return ErrPackageTooLarge.New(
			nil, "the files of %s have more than %d bytes together", RegistryFolder, min(maxFolderBytes, f.limits.Package),
		)
	}
	data := make([]byte, h.Size)
	if _, err := io.ReadFull(r, data); err != nil {
		return TarError(err, number, true)
	}
	f.left -= h.Size
	f.files[below] = data
	return nil
}

// whiteoutTarget returns the path that a whiteout removes from lower layers, "" for other metadata files of whiteouts,
// and false if name is not one.
func whiteoutTarget(name string) (string, bool) {
	dir, base := path.Dir(name), path.Base(name)
	switch {
	case base == tarfile.OpaqueWhiteout:
		return dir, true
	case strings.HasPrefix(base, tarfile.WhiteoutPrefix+tarfile.WhiteoutPrefix):
		return "", true
	case strings.HasPrefix(base, tarfile.WhiteoutPrefix):
		return path.Join(dir, strings.TrimPrefix(base, tarfile.WhiteoutPrefix)), true
	}
	return "", false
}

// onPath reports whether a path is the folder, or below it.
func onPath(name string) bool {
	return name == RegistryFolder || strings.HasPrefix(name, RegistryFolder+"/")
}

// isHidden reports whether a higher layer replaces or removes a path or one of its parents.
func (f *folderReader) isHidden(name string) bool {
	for ; name != "."; name = path.Dir(name) {
		if f.hidden[name] {
			return true
		}
	}
	return f.hidden["."]
}
