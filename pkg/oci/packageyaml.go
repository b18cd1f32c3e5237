package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ctxio"
)

// VerifiedArtifact is an artifact that verifies the digest of content before it returns
// the content, such as an artifact in a store. PackageYAML then decompresses a layer
// while it reads it, and does not hold it in memory.
type VerifiedArtifact interface {
	Artifact
	// OpenVerified is like Open, and returns only verified content.
	OpenVerified(ctx context.Context, d Descriptor) (io.ReadCloser, error)
}

// PackageYAML returns the file package.yaml of a package: the one in the root of the
// annotated layer or, if no layer is annotated, in the root of the file system of all
// layers (xpkg specification, "Layers"). It verifies the digest of each layer before it
// parses the layer.
//
// Memory is bounded by the size of the file, the decompressor's window and, for an
// artifact that is not a [VerifiedArtifact], the compressed size of one layer.
func PackageYAML(ctx context.Context, a Artifact, m Manifest, limits Limits) ([]byte, error) {
	return PackageYAMLWithin(ctx, a, m, limits, nil)
}

// PackageYAMLWithin is like PackageYAML, and lets the caller bound the memory of
// concurrent calls. It calls reserve with the size of the file in bytes before it
// allocates memory for the file; reserve may block, and its error is returned.
func PackageYAMLWithin(
	ctx context.Context, a Artifact, m Manifest, limits Limits, reserve func(bytes int64) error,
) ([]byte, error) {
	var data []byte
	err := StreamPackageYAML(ctx, a, m, limits, func(size int64, r io.Reader) error {
		if reserve != nil {
			if err := reserve(size); err != nil {
				return err
			}
		}
		data = make([]byte, size)
		_, err := io.ReadFull(r, data)
		return err
	})
	if err != nil {
		return nil, err
	}
	return data, nil
}

// StreamPackageYAML is like PackageYAML, and passes the file to use while it is decompressed: its size in bytes, and
// its content. An error of use is returned as it is.
//
// The layer is verified before, but a problem of its tar can be after the file. If StreamPackageYAML returns an error,
// use must not have had an effect.
func StreamPackageYAML(
	ctx context.Context, a Artifact, m Manifest, limits Limits, use func(size int64, r io.Reader) error,
) error {
	return packageYAML(ctx, a, m, limits.WithDefaults(), use)
}

// OpenPackageLayers opens exactly the layers that are required to read the file
// package.yaml of m: the annotated layer, or the layers from the top until one of them
// has the file. For an image without the file, it opens the layers that are required to
// read the folder of [ReadRegistryFolder]. An artifact that stores the content that it opens has all of them
// afterwards. It fails with ErrLayerTooLarge before it opens a layer that is larger than
// the limits allow.
func OpenPackageLayers(ctx context.Context, a VerifiedArtifact, m Manifest, limits Limits) error {
	limits = limits.WithDefaults()
	if m.Base == nil {
		// The number of layers is known only after the file has been found.
		_, err := PackageYAML(ctx, a, m, limits)
		if !errors.Is(err, ErrNoPackageYAML) {
			return err
		}
		// Only metadata is read: the content of other files does not count towards the limits of a package.
		files, folderErr := ReadRegistryFolder(
			ctx, a, m, limits, func(name string) bool { return strings.HasSuffix(name, ".yaml") }, nil,
		)
		if len(files) > 0 || folderErr != nil {
			return folderErr
		}
		return err
	}
	if err := CheckLayerSize(m, *m.Base, limits); err != nil {
		return err
	}
	r, err := a.OpenVerified(ctx, *m.Base)
	if err != nil {
		return err
	}
	return r.Close()
}

// CheckLayerSize fails with ErrLayerTooLarge when a layer of m is larger than the
// annotated layer of a package may be.
func CheckLayerSize(m Manifest, layer Descriptor, limits Limits) error {
	budget := newBudget(m, limits.WithDefaults())
	return budget.spend(layer)
}

// packageYAML searches the layers from the top. The first layer that contains or removes
// the file determines the result, because a layer hides only the layers below it. The
// layers of a runtime image below the package are therefore never read.
func packageYAML(ctx context.Context, a Artifact, m Manifest, limits Limits, use fileUse) error {
	var aside []string
	budget := newBudget(m, limits)
	for _, layer := range m.contentLayers() {
		if err := budget.spend(layer); err != nil {
			return err
		}
		scan, err := readLayer(ctx, a, layer, limits, use)
		if err != nil {
			return err
		}
		if scan.found {
			return nil
		}
		aside = append(aside, scan.aside...)
		if scan.hidden {
			return ErrNoPackageYAML.New(
				fmt.Errorf("layer %s removes it", layer.Digest.Short()), "manifest %s has no %s", m.Digest.Short(), PackageFile,
			)
		}
	}
	return noPackageYAML(m, aside)
}

func readLayer(ctx context.Context, a Artifact, layer Descriptor, limits Limits, use fileUse) (layerScan, error) {
	most := newOutputLimit(layer, limits)
	scan, err := withLayer(
		ctx, a, layer, limits, func(r io.Reader) (layerScan, error) { return scanLayer(r, most, limits, use) },
	)
	if err != nil || scan.link == "" {
		return scan, err
	}
	return withLayer(
		ctx, a, layer, limits, func(r io.Reader) (layerScan, error) { return scanLink(r, most, limits, use, scan.link) },
	)
}

// withLayer opens a layer and calls scan with its tar.
func withLayer(
	ctx context.Context, a Artifact, layer Descriptor, limits Limits, scan func(io.Reader) (layerScan, error),
) (layerScan, error) {
	blob, err := openVerified(ctx, a, layer)
	if err != nil {
		return layerScan{}, err
	}
	defer blob.Close()
	plain, err := OpenLayer(blob, layer, limits)
	if err != nil {
		return layerScan{}, err
	}
	defer plain.Close()
	return scan(plain)
}

// openVerified opens content after its digest has been verified. If the artifact does not
// verify content, the content is read into memory.
func openVerified(ctx context.Context, a Artifact, d Descriptor) (_ io.ReadCloser, err error) {
	if v, ok := a.(VerifiedArtifact); ok {
		return v.OpenVerified(ctx, d)
	}
	r, err := a.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	data, err := readVerified(ctxio.Reader(ctx, r), d)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

func noPackageYAML(m Manifest, aside []string) error {
	where := "image"
	if m.Base != nil {
		where = "base layer"
	}
	var why error
	if len(aside) > 0 {
		why = fmt.Errorf("it has %s, which is not %s in the root", strings.Join(aside, ", "), PackageFile)
	}
	return ErrNoPackageYAML.New(why, "the %s of manifest %s has no %s", where, m.Digest.Short(), PackageFile)
}

// budget bounds a download by the declared sizes of the manifest, before the first
// request.
type budget struct {
	spent, most int64
	flag        string
}

func newBudget(m Manifest, limits Limits) budget {
	if m.Base == nil {
		return budget{most: limits.Image, flag: "--max-image-size"}
	}
	if c, _ := LayerCompression(m.Base.MediaType); c == Uncompressed {
		// The size of the file and of the headers around it.
		return budget{most: limits.Package + limits.Headers, flag: "--max-package-size"}
	}
	return budget{most: limits.Layer, flag: "--max-layer-size"}
}

func (b *budget) spend(layer Descriptor) error {
	if layer.Size > b.most-b.spent {
		return ErrLayerTooLarge.New(
			nil, "layer %s has %d bytes, at most %d are allowed (%s)", layer.Digest.Short(), layer.Size, b.most-b.spent, b.flag,
		)
	}
	b.spent += layer.Size
	return nil
}
