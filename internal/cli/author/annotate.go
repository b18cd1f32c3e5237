package author

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// annotate returns an artifact whose root has additional annotations, and therefore another digest.
func annotate(ctx context.Context, a oci.Artifact, add map[string]string, limits oci.Limits) (oci.Artifact, error) {
	if len(add) == 0 {
		return a, nil
	}
	if _, ok := add[oci.AnnotationKey]; ok {
		return nil, terminal.ErrUsage.New(nil, "the annotation %s cannot be set", oci.AnnotationKey).
			WithDo("Remove it: `xpkg build` sets it to mark the parts of a package.")
	}
	raw, document, err := oci.ReadDocument(ctx, a, a.Root(), limits)
	if err != nil {
		return nil, err
	}
	// Unknown fields must be kept.
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	all := maps.Clone(document.Annotations)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, add)
	if fields["annotations"], err = json.Marshal(all); err != nil {
		return nil, err
	}
	changed, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	root := a.Root()
	root.Digest, root.Size = oci.DigestOf(changed), int64(len(changed))
	return annotated{a, root, changed}, nil
}

// annotated is an artifact with a different root.
type annotated struct {
	oci.Artifact
	root oci.Descriptor
	raw  []byte
}

// Root implements oci.Artifact.
func (a annotated) Root() oci.Descriptor { return a.root }

// Open implements oci.Artifact.
func (a annotated) Open(ctx context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	if d.Digest == a.root.Digest {
		return io.NopCloser(bytes.NewReader(a.raw)), nil
	}
	return a.Artifact.Open(ctx, d)
}
