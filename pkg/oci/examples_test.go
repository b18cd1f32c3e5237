package oci_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
)

func TestExamplesAreReadFromTheirLayer(t *testing.T) {
	const stream = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: boats}\n"
	for name, c := range map[string]struct {
		examples string
		extra    []image.ExtraLayer
		want     string
		code     error
	}{
		"examples": {examples: "kind: Boat\n", want: "kind: Boat\n"},
		"none":     {},
		"another layer": {extra: []image.ExtraLayer{{Annotation: "docs", Files: []image.File{{
			Path: oci.ExamplesFile, Data: []byte("a: b\n"),
		}}}}},
		"too many examples": {examples: strings.Repeat("a: b\n", 4<<20), code: oci.ErrPackageTooLarge},
	} {
		a, err := image.Build(t.Context(), image.Input{
			PackageYAML: []byte(stream), Examples: []byte(c.examples), Extra: c.extra,
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := examplesOf(t.Context(), a)
		if !bytes.Equal(got, []byte(c.want)) || !errors.Is(err, c.code) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func examplesOf(ctx context.Context, a oci.Artifact) ([]byte, error) {
	m, err := oci.FindManifest(ctx, a, oci.Platform{}, oci.Limits{})
	if err != nil {
		return nil, err
	}
	return oci.Examples(ctx, a, m, oci.Limits{})
}
