package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/crddiff"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// maxFieldsInText limits the dropped fields in an error.
const maxFieldsInText = 3

// formerSchema is a former storage version with fields that the storage version does not describe.
type formerSchema struct {
	version string
	// fields are the paths of the fields.
	fields []string
	// readable reports whether objects can be read in this version and in the storage version.
	readable bool
}

// formerSchemas returns the former storage versions of a CRD with fields that its storage version does not describe.
func formerSchemas(raw []byte, d plan.Definition, former []string) ([]formerSchema, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(raw, crd); err != nil {
		return nil, fmt.Errorf("decode the CustomResourceDefinition: %w", err)
	}
	var out []formerSchema
	for _, version := range former {
		var fields []string
		for _, change := range crddiff.Dropped(crd, version, d.Storage) {
			fields = append(fields, change.Path)
		}
		if len(fields) > 0 {
			out = append(out, formerSchema{
				version, fields, slices.Contains(d.Served, version) && slices.Contains(d.Served, d.Storage),
			})
		}
	}
	return out, nil
}

// loss describes the fields that an object loses when it is stored in the storage version; it is empty if there are
// none.
func (c *Cluster) loss(ctx context.Context, d plan.Definition, p partial, formers []formerSchema) (string, error) {
	for _, former := range formers {
		if !former.readable {
			return fmt.Sprintf("%s can have %s of %s, and the API server does not serve both %s and %s to read them",
				p.name(), wording.Few(former.fields, maxFieldsInText, ", "), former.version, former.version, d.Storage), nil
		}
	}
	lost, err := c.lostBy(ctx, d, p, formers)
	if len(lost) == 0 {
		return "", err
	}
	return p.name() + " has " + wording.Few(lost, maxFieldsInText, ", "), nil
}

// lostBy returns the paths of the values that an object loses when it is stored in the storage version, in order. An
// object that another client has changed or deleted since it was listed loses none by a rewrite.
func (c *Cluster) lostBy(
	ctx context.Context, d plan.Definition, p partial, formers []formerSchema,
) (dropped []string, err error) {
	for _, former := range formers {
		before, err := c.contentIn(ctx, d, former.version, p)
		if before == nil || err != nil {
			return nil, err
		}
		after, err := c.contentIn(ctx, d, d.Storage, p)
		if after == nil || err != nil {
			return nil, err
		}
		dropped = append(dropped, lostFields("", before, after)...)
	}
	slices.Sort(dropped)
	return slices.Compact(dropped), nil
}

// contentIn returns the content of an object in an API version, or nil if the object has changed or was deleted.
func (c *Cluster) contentIn(ctx context.Context, d plan.Definition, version string, p partial) (map[string]any, error) {
	raw, err := c.get(ctx, runtime.ContentTypeJSON, nil, p.pathIn("/apis/"+d.Group+"/"+version, d.Plural)...)
	if apierrors.IsNotFound(err) && !notServed(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Metadata.Name, err)
	}
	var now partial
	var content map[string]any
	if err := json.Unmarshal(raw, &now); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &content); err != nil {
		return nil, err
	}
	if now.Metadata.UID != p.Metadata.UID || now.Metadata.ResourceVersion != p.Metadata.ResourceVersion {
		return nil, nil
	}
	delete(content, "apiVersion")
	return content, nil
}

// lostFields returns the paths of the values that are only in the first of two versions of a value. Null stands for no
// value.
func lostFields(path string, before, after any) []string {
	var out []string
	switch b := before.(type) {
	case map[string]any:
		a, ok := after.(map[string]any)
		if !ok {
			return []string{path}
		}
		for _, name := range slices.Sorted(maps.Keys(b)) {
			if value, kept := a[name]; kept {
				out = append(out, lostFields(path+"."+name, b[name], value)...)
			} else if b[name] != nil {
				out = append(out, path+"."+name)
			}
		}
	case []any:
		a, ok := after.([]any)
		if !ok || len(a) != len(b) {
			return []string{path}
		}
		for i := range b {
			out = append(out, lostFields(fmt.Sprintf("%s[%d]", path, i), b[i], a[i])...)
		}
	case nil:
	default:
		if !reflect.DeepEqual(before, after) {
			return []string{path}
		}
	}
	return out
}
