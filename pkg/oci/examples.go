package oci

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/oci/internal/tarfile"
)

// ExamplesFile is the file with the examples in their layer.
const ExamplesFile = ".up/examples.yaml"

// maxExamples is the maximum size of the file with the examples in bytes. The largest known one has 2 MiB.
const maxExamples = 16 << 20

// Examples returns the file with the examples of a package: ExamplesFile of the layer that is annotated as
// AnnotationExamples. It is empty for a package without examples. Examples verifies the digest of the layer before it
// parses the layer.
func Examples(ctx context.Context, a Artifact, m Manifest, limits Limits) ([]byte, error) {
	i := slices.IndexFunc(m.Layers, func(d Descriptor) bool { return d.Annotations[AnnotationKey] == AnnotationExamples })
	if i < 0 {
		return nil, nil
	}
	limits = limits.WithDefaults()
	if err := CheckLayerSize(m, m.Layers[i], limits); err != nil {
		return nil, err
	}
	var found []byte
	_, err := withLayer(ctx, a, m.Layers[i], limits, func(r io.Reader) (layerScan, error) {
		var err error
		found, err = readExamples(r, limits)
		return layerScan{}, err
	})
	return found, err
}

// readExamples returns the examples in the tar of a layer.
func readExamples(r io.Reader, limits Limits) ([]byte, error) {
	var counter tarfile.Counter
	sniffer := &tarfile.Sniffer{R: r}
	tr := tar.NewReader(sniffer)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, TarError(err, counter.Entries, sniffer.IsTar())
		}
		counter.Add(h)
		if err := CheckTar(counter.Entries, counter.Headers, limits); err != nil {
			return nil, err
		}
		if cleanName(h.Name) != ExamplesFile || tarfile.Irregular(h) != "" {
			continue
		}
		if h.Size > maxExamples {
			return nil, ErrPackageTooLarge.New(nil, "%s has %d bytes, at most %d are allowed", ExamplesFile, h.Size, maxExamples)
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			return nil, TarError(err, counter.Entries, true)
		}
		return data, nil
	}
}
