package oci

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// blobs gives the verified bytes of content.
type blobs interface {
	open(ctx context.Context, d Descriptor) (io.ReadCloser, error)
}

// PackageYAML gives the stream of the package: the file package.yaml in the root
// of the annotated layer or, when no layer is annotated, of the filesystem that
// all layers make together (xpkg specification, "Layers"). The blobs must be in
// the store, where [Remote.Fetch] puts them, and are verified once more as they
// are read.
//
// Memory is bounded by the size of the file and of the decompressor's window.
func PackageYAML(ctx context.Context, store *Store, m Manifest, limits Limits) ([]byte, error) {
	return packageYAML(ctx, storeBlobs{store}, m, limits.WithDefaults())
}

// PackageYAMLWithin is PackageYAML for a caller that bounds the memory of several
// such calls: room is called with the size of the file, in bytes, before memory for
// it is taken, and waits until there is so much. An error of it ends the call.
func PackageYAMLWithin(ctx context.Context, store *Store, m Manifest, limits Limits, room func(bytes int64) error) ([]byte, error) {
	return packageYAML(ctx, boundedBlobs{storeBlobs{store}, room}, m, limits.WithDefaults())
}

// boundedBlobs are blobs for a caller that bounds memory.
type boundedBlobs struct {
	blobs
	room func(bytes int64) error
}

type storeBlobs struct{ *Store }

func (s storeBlobs) open(ctx context.Context, d Descriptor) (io.ReadCloser, error) {
	return s.Open(ctx, d.Digest)
}

// packageYAML looks through the layers from the top. The first one that has the
// file or removes it decides, since a layer only hides what is below it; so the
// layers of a program below the package are never looked at.
func packageYAML(ctx context.Context, content blobs, m Manifest, limits Limits) ([]byte, error) {
	var aside []string
	budget := newBudget(m, limits)
	for _, layer := range m.contentLayers() {
		if err := budget.spend(layer); err != nil {
			return nil, err
		}
		scan, err := readLayer(ctx, content, layer, limits)
		if err != nil {
			return nil, err
		}
		if scan.found {
			return scan.stream, nil
		}
		aside = append(aside, scan.aside...)
		if scan.hidden {
			return nil, ErrNoPackageYAML.New(fmt.Errorf("layer %s removes it", layer.Digest.Short()), "manifest %s has no %s", m.Digest.Short(), streamName)
		}
	}
	return nil, noPackageYAML(m, aside)
}

func readLayer(ctx context.Context, content blobs, layer Descriptor, limits Limits) (layerScan, error) {
	blob, err := content.open(ctx, layer)
	if err != nil {
		return layerScan{}, err
	}
	defer blob.Close() //nolint:errcheck // It was only read.
	plain, err := unpackLayer(blob, layer, limits)
	if err != nil {
		return layerScan{}, err
	}
	defer plain.Close() //nolint:errcheck // It was only read.
	bounded, _ := content.(boundedBlobs)
	return scanLayer(plain, newOutputLimit(layer, limits), limits, bounded.room)
}

func noPackageYAML(m Manifest, aside []string) error {
	where := "image"
	if m.Base != nil {
		where = "base layer"
	}
	var why error
	if len(aside) > 0 {
		why = fmt.Errorf("it has %s, which is not %s in the root", strings.Join(aside, ", "), streamName)
	}
	return ErrNoPackageYAML.New(why, "the %s of manifest %s has no %s", where, m.Digest.Short(), streamName)
}

// budget bounds what is downloaded, by the sizes that the manifest declares and
// before anything is asked for.
type budget struct {
	spent, most int64
	flag        string
}

func newBudget(m Manifest, limits Limits) budget {
	if m.Base == nil {
		return budget{most: limits.Image, flag: "--max-image-size"}
	}
	if c, _ := layerCompression(m.Base.MediaType); c == Uncompressed {
		// The file itself and the headers around it.
		return budget{most: limits.Package + limits.Headers, flag: "--max-package-size"}
	}
	return budget{most: limits.Layer, flag: "--max-layer-size"}
}

func (b *budget) spend(layer Descriptor) error {
	if layer.Size > b.most-b.spent {
		return ErrLayerTooLarge.New(nil, "layer %s has %d bytes, and %d may be read (%s)", layer.Digest.Short(), layer.Size, b.most-b.spent, b.flag)
	}
	b.spent += layer.Size
	return nil
}
