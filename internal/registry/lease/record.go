package lease

import (
	"context"
	"strconv"

	"github.com/xpkg-dev/xpkg/internal/registry/annotated"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// artifactType is the type of the manifest of a record.
const artifactType = "application/vnd.xpkg.lease.v1+json"

// The annotations of a record.
const holderAnnotation, serialAnnotation = "dev.xpkg.lease.holder", "dev.xpkg.lease.serial"

// record is the content of the manifest of a lease.
type record struct {
	Holder string
	Serial int
	// Free means that no server holds the lease.
	Free bool
}

// artifact returns the record as an artifact.
func (r record) artifact() oci.Artifact {
	if r.Free {
		return annotated.New(artifactType, nil)
	}
	return annotated.New(artifactType, map[string]string{holderAnnotation: r.Holder, serialAnnotation: strconv.Itoa(r.Serial)})
}

// readRecord reads a record. Any other manifest counts as the record of an unknown holder.
func readRecord(ctx context.Context, a oci.Artifact) (record, error) {
	kind, annotations, err := annotated.Read(ctx, a)
	if err != nil {
		return record{}, err
	}
	holder := annotations[holderAnnotation]
	return record{Holder: holder, Free: holder == "" && kind == artifactType}, nil
}
