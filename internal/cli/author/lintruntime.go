package author

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// ErrLostCapability is the code for a Provider without a capability that its runtime has.
var ErrLostCapability = errcode.Code{
	Name: "LostCapability", Class: errcode.Invalid,
	Cause: "The runtime of a Provider can start while kinds are inactive, but its metadata does not declare that, so that all kinds are activated. Older build tools drop the field.",
	Fix:   "Add safe-start to spec.capabilities of the metadata, and build the package with a tool that keeps it, such as xpkg.",
}

// gate is in each Go program with the gate of crossplane-runtime for controllers whose kinds are not active yet.
var gate = []byte("/pkg/reconciler/customresourcesgate.")

// lintRuntime reports a Provider whose runtime, in the other layers of the image, has the gate of safe-start, and whose
// metadata does not have the capability.
func (c *LintCmd) lintRuntime(
	ctx context.Context, a oci.Artifact, m oci.Manifest, stream []byte, limits oci.Limits,
) (*xpkg.Finding, error) {
	meta, err := xpkg.ReadMeta(stream, xpkg.ReadOptions{Limits: c.StreamLimits()})
	if err != nil || meta.Kind != xpkg.Provider || meta.HasCapability(xpkg.CapabilitySafeStart) {
		return nil, nil //nolint:nilerr // The check of the package reports metadata that cannot be read.
	}
	for _, layer := range m.Layers {
		if _, isTar := oci.LayerCompression(layer.MediaType); !isTar || layer.Annotations[oci.AnnotationKey] != "" {
			continue
		}
		found, err := contains(ctx, a, layer, gate, limits)
		if err != nil {
			return nil, err
		}
		if found {
			return &xpkg.Finding{
				Code: ErrLostCapability, Severity: xpkg.Warning, File: oci.PackageFile,
				Message: "the runtime can start while kinds are inactive, and spec.capabilities does not contain " +
					xpkg.CapabilitySafeStart + ": all kinds are activated",
				Fix: ErrLostCapability.Fix,
			}, nil
		}
	}
	return nil, nil
}

// contains reports whether the unpacked layer contains bytes.
func contains(
	ctx context.Context, a oci.Artifact, layer oci.Descriptor, part []byte, limits oci.Limits,
) (_ bool, err error) {
	raw, err := a.Open(ctx, layer)
	if err != nil {
		return false, err
	}
	defer terminal.Close(&err, raw)
	plain, err := oci.OpenLayer(oci.VerifyReader(raw, layer), layer, limits.WithDefaults())
	if err != nil {
		return false, err
	}
	defer terminal.Close(&err, plain)
	buffer, kept := make([]byte, 1<<20), 0
	for {
		n, err := io.ReadFull(plain, buffer[kept:])
		text := buffer[:kept+n]
		if bytes.Contains(text, part) {
			return true, nil
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return false, nil
		case err != nil:
			return false, err
		}
		kept = copy(buffer, text[len(text)-len(part)+1:])
	}
}
