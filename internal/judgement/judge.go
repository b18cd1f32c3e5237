package judgement

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kjson "sigs.k8s.io/json"

	"github.com/xpkg-dev/xpkg/internal/crdvalidation"
	"github.com/xpkg-dev/xpkg/pkg/crddiff"
)

// Judge judges the custom resources of a CRD that changes. It is safe for concurrent use.
type Judge struct {
	course       course
	live, future side
	rules        rules
	// observes reports whether the status is a subresource, whose values are not lost.
	observes bool
}

// course has the versions that take part in an update of a custom resource.
type course struct {
	// read is the version in which the objects are read from the live CRD, and checked the version in which the future one
	// validates them.
	read, checked string
	// stored are the versions in which the live and the future CRD store objects. Converts reports whether the API server
	// converts objects between versions itself, by dropping fields.
	storedLive, storedFuture string
	converts                 bool
}

// side is what a CRD does to its custom resources.
type side struct {
	apiVersion string
	checked    *crdvalidation.Version
	// before and after drop fields when an object is read from and written to the storage, in other versions. Both can be
	// nil.
	before, after *crdvalidation.Version
	// hasTransitions reports whether a rule compares objects with their former values.
	hasTransitions bool
}

// New returns a Judge for a change from a live to a future CRD, which are JSON of apiextensions.k8s.io/v1, or nil if
// the change can affect no custom resource, or if no version shows how it does: the CRDs serve no common version, and
// a webhook converts between their versions.
func New(live, future []byte) (j *Judge, err error) {
	defer func() {
		if p := recover(); p != nil {
			j, err = nil, fmt.Errorf("the schema cannot be read: %v", p)
		}
	}()
	from, err := crdvalidation.ReadCRD(live)
	if err != nil {
		return nil, err
	}
	to, err := crdvalidation.ReadCRD(future)
	if err != nil {
		return nil, err
	}
	c, ok := courseOf(from, to)
	if !ok {
		return nil, nil
	}
	changes := c.relevant(from, to)
	if len(changes) == 0 && c.read == c.checked && from.Spec.PreserveUnknownFields == to.Spec.PreserveUnknownFields {
		return nil, nil
	}
	j = &Judge{course: c, observes: Observes(from, c.read)}
	if j.live, err = newSide(from, c.read, c.storedLive, c); err != nil {
		return nil, err
	}
	if j.future, err = newSide(to, c.checked, c.storedFuture, c); err != nil {
		return nil, err
	}
	j.rules = rules{changes: changes, live: j.live.checked.Schema(), future: j.future.checked.Schema()}
	return j, nil
}

// courseOf returns the versions of an update, and false if none is known.
func courseOf(from, to *apiextensionsv1.CustomResourceDefinition) (course, bool) {
	c := course{
		storedLive: storageOf(from), storedFuture: storageOf(to),
		converts: isConverted(from) && isConverted(to),
	}
	was, is := servedBy(from), servedBy(to)
	common := slices.DeleteFunc(slices.Clone(was), func(v string) bool { return !slices.Contains(is, v) })
	switch {
	case slices.Contains(common, c.storedLive):
		c.read, c.checked = c.storedLive, c.storedLive
	case len(common) > 0:
		c.read, c.checked = common[0], common[0]
	case !c.converts || len(was) == 0 || len(is) == 0:
		return c, false
	default:
		c.read, c.checked = preferred(was, c.storedLive), preferred(is, c.storedFuture)
	}
	return c, true
}

// preferred returns a version if it is one of some, and the first of them otherwise.
func preferred(versions []string, version string) string {
	if slices.Contains(versions, version) {
		return version
	}
	return versions[0]
}

// isConverted reports whether the API server converts between the versions of a CRD without a webhook.
func isConverted(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.Spec.Conversion == nil || crd.Spec.Conversion.Strategy != apiextensionsv1.WebhookConverter
}

func storageOf(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

func servedBy(crd *apiextensionsv1.CustomResourceDefinition) []string {
	var out []string
	for _, v := range crd.Spec.Versions {
		if v.Served {
			out = append(out, v.Name)
		}
	}
	return out
}

func newSide(crd *apiextensionsv1.CustomResourceDefinition, checked, stored string, c course) (s side, err error) {
	s.apiVersion = crd.Spec.Group + "/" + checked
	if s.checked, err = crdvalidation.NewVersion(crd, checked); err != nil {
		return s, err
	}
	s.hasTransitions = hasTransitions(schemaOf(crd, checked))
	if !c.converts {
		return s, nil
	}
	if before := c.storedLive; before != checked && schemaOf(crd, before) != nil {
		if s.before, err = crdvalidation.NewVersion(crd, before); err != nil {
			return s, err
		}
	}
	if stored != checked && schemaOf(crd, stored) != nil {
		s.after, err = crdvalidation.NewVersion(crd, stored)
	}
	return s, err
}

// Version returns the version in which custom resources have to be read from the live CRD.
func (j *Judge) Version() string { return j.course.read }

// Changes returns the changes of the schema that can affect custom resources.
func (j *Judge) Changes() []crddiff.Change { return j.rules.changes }

// Object judges a custom resource, which is JSON in the version of [Judge.Version].
func (j *Judge) Object(ctx context.Context, raw []byte) (found []Finding, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the validation failed: %v", p)
		}
	}()
	var liveObject, futureObject map[string]any
	for _, o := range []*map[string]any{&liveObject, &futureObject} {
		if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, o); err != nil {
			return nil, err
		}
	}
	j.live.read(liveObject)
	j.future.read(futureObject)
	// The errors are of the objects as they are read, and the loss is of those that are stored afterwards.
	errs, tolerated := j.errors(ctx, liveObject, futureObject)
	j.live.write(liveObject)
	j.future.write(futureObject)
	for _, l := range lostValues(j.rules.live, liveObject, futureObject, j.observes) {
		found = append(found, j.rules.ofLoss(l))
	}
	for _, e := range errs {
		found = append(found, j.rules.ofError(e))
	}
	if len(found) > 0 {
		return distinct(found), nil
	}
	for _, e := range tolerated {
		f := j.rules.ofError(e)
		f.Tolerated = true
		found = append(found, f)
	}
	return distinct(found), nil
}

// read processes an object as a CRD does when it is read.
func (s side) read(object map[string]any) {
	if s.before != nil {
		s.before.Read(object)
	}
	object["apiVersion"] = s.apiVersion
	s.checked.Read(object)
}

// write drops the fields that a CRD does not store.
func (s side) write(object map[string]any) {
	if s.after != nil {
		s.after.Prune(object)
	}
}

// touched returns an object whose only difference is a label.
func touched(object map[string]any) map[string]any {
	out := maps.Clone(object)
	metadata, _ := object["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]any{}
	}
	labels, _ := metadata["labels"].(map[string]any)
	labels = maps.Clone(labels)
	if labels == nil {
		labels = map[string]any{}
	}
	labels["xpkg.dev/judged"] = "true"
	metadata["labels"], out["metadata"] = labels, metadata
	return out
}
