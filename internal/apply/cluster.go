// Package apply carries a plan out: one call for each object that must change
// and none for one that need not.
//
// Objects travel as JSON bytes. What a package says about an object is never
// decoded into typed structures, and answers are asked for as metadata only, so
// that memory does not grow with the size of schemas.
package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/xpkg-dev/xpkg/internal/plan"
)

const (
	metadataObject = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	metadataList   = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// Cluster reads metadata of objects and writes objects, by the bytes.
type Cluster struct {
	rest rest.Interface
}

// requestTimeout bounds one call, so that a server that hangs does not hold a
// worker for ever. It is longer than the API server's own limit of a minute.
const requestTimeout = 70 * time.Second

// NewCluster makes a Cluster of a client configuration. The client library's own
// rate limit is off: how many calls are under way at once is decided by Apply,
// and the API server's fairness does the rest.
func NewCluster(cfg *rest.Config) (*Cluster, error) {
	c := rest.CopyConfig(cfg)
	c.QPS = -1
	c.Timeout = requestTimeout
	c.ContentType = runtime.ContentTypeJSON
	c.GroupVersion = &metav1.SchemeGroupVersion
	c.APIPath = "/apis"
	// Objects are bytes here; the scheme serves to read what the server says
	// when it refuses one.
	c.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("cluster client: %w", err)
	}
	return &Cluster{rest: client}, nil
}

// send makes one call. The error of a call that the server refused holds what the
// server says about it.
func send(ctx context.Context, req *rest.Request) ([]byte, error) {
	result := req.Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// fewObjects is up to how many objects of one kind are read one by one. Above
// it, one list of the whole kind is cheaper.
const fewObjects = 8

// Metadata reads the metadata of those of the objects that exist. It costs one
// list for each kind, or one call for each object where there are few.
func (c *Cluster) Metadata(ctx context.Context, refs []plan.Ref) (map[plan.Ref]plan.Live, error) {
	byCollection := map[string][]plan.Ref{}
	for _, ref := range refs {
		path, err := collection(ref)
		if err != nil {
			return nil, err
		}
		byCollection[path] = append(byCollection[path], ref)
	}
	live := make(map[plan.Ref]plan.Live, len(refs))
	for path, refs := range byCollection {
		read := c.list
		if len(refs) <= fewObjects {
			read = c.each
		}
		if err := read(ctx, path, refs, live); err != nil {
			return nil, err
		}
	}
	return live, nil
}

func (c *Cluster) each(ctx context.Context, path string, refs []plan.Ref, live map[plan.Ref]plan.Live) error {
	for _, ref := range refs {
		raw, err := send(ctx, c.rest.Get().AbsPath(path, ref.Name).SetHeader("Accept", metadataObject))
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read %s %s: %w", ref.Kind, ref.Name, err)
		}
		var m metav1.PartialObjectMetadata
		if err := json.Unmarshal(raw, &m); err != nil {
			return fmt.Errorf("read %s %s: %w", ref.Kind, ref.Name, err)
		}
		live[ref] = liveOf(ref, &m)
	}
	return nil
}

// pageSize bounds the memory of one answer.
const pageSize = "500"

func (c *Cluster) list(ctx context.Context, path string, refs []plan.Ref, live map[plan.Ref]plan.Live) error {
	wanted := make(map[string]plan.Ref, len(refs))
	for _, ref := range refs {
		wanted[ref.Name] = ref
	}
	for next := ""; ; {
		req := c.rest.Get().AbsPath(path).SetHeader("Accept", metadataList).Param("limit", pageSize)
		if next != "" {
			req = req.Param("continue", next)
		}
		raw, err := send(ctx, req)
		if err != nil {
			return fmt.Errorf("list %s: %w", path, err)
		}
		var page metav1.PartialObjectMetadataList
		if err := json.Unmarshal(raw, &page); err != nil {
			return fmt.Errorf("list %s: %w", path, err)
		}
		for i := range page.Items {
			if ref, ok := wanted[page.Items[i].Name]; ok {
				live[ref] = liveOf(ref, &page.Items[i])
			}
		}
		if next = page.Continue; next == "" {
			return nil
		}
	}
}

func liveOf(ref plan.Ref, m *metav1.PartialObjectMetadata) plan.Live {
	l := plan.Live{
		Ref: ref, UID: m.UID, ResourceVersion: m.ResourceVersion, Deleting: m.DeletionTimestamp != nil,
		Labels: m.Labels, Annotations: m.Annotations, Owners: m.OwnerReferences,
	}
	for _, f := range m.ManagedFields {
		if f.Manager == plan.FieldManager && f.Subresource == "" && f.FieldsV1 != nil {
			labels, annotations := managedKeys(f.FieldsV1.GetRawBytes())
			l.ManagedLabels = append(l.ManagedLabels, labels...)
			l.ManagedAnnotations = append(l.ManagedAnnotations, annotations...)
		}
	}
	return l
}

// managedKeys reads the keys of labels and annotations out of a managed fields
// entry, where a key k is spelt "f:k".
func managedKeys(raw []byte) (labels, annotations []string) {
	var fields struct {
		Metadata struct {
			Labels      map[string]json.RawMessage `json:"f:labels"`
			Annotations map[string]json.RawMessage `json:"f:annotations"`
		} `json:"f:metadata"`
	}
	if json.Unmarshal(raw, &fields) != nil {
		return nil, nil
	}
	return keys(fields.Metadata.Labels), keys(fields.Metadata.Annotations)
}

func keys(m map[string]json.RawMessage) []string {
	var out []string
	for k := range m {
		if name, ok := strings.CutPrefix(k, "f:"); ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// write sends one change. Content is the canonical JSON of the object as the
// package has it; it is not needed when only owners are written.
func (c *Cluster) write(ctx context.Context, ch plan.Change, content []byte) (types.UID, error) {
	path, err := collection(ch.Ref)
	if err != nil {
		return "", err
	}
	body, err := body(ch, content)
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", ch.Ref.Kind, ch.Ref.Name, err)
	}
	req := c.request(ch, path).
		Param("fieldManager", plan.FieldManager).
		SetHeader("Accept", metadataObject).
		Body(body)
	raw, err := send(ctx, req)
	if err != nil {
		return "", err
	}
	var m metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &m); err != nil {
		return "", fmt.Errorf("%s %s: answer of the API server: %w", ch.Ref.Kind, ch.Ref.Name, err)
	}
	return m.UID, nil
}

func (c *Cluster) request(ch plan.Change, path string) *rest.Request {
	switch {
	case ch.Action == plan.Create:
		return c.rest.Post().AbsPath(path).SetHeader("Content-Type", runtime.ContentTypeJSON)
	case ch.MetadataOnly:
		return c.rest.Patch(types.MergePatchType).AbsPath(path, ch.Ref.Name)
	}
	return c.rest.Put().AbsPath(path, ch.Ref.Name).SetHeader("Content-Type", runtime.ContentTypeJSON)
}

// body is the JSON of a write. The metadata of the plan takes the place of the
// package's, and status is left out, since it is never a package's to set.
func body(ch plan.Change, content []byte) ([]byte, error) {
	meta := metav1.ObjectMeta{
		UID: ch.UID, ResourceVersion: ch.ResourceVersion, OwnerReferences: ch.Owners,
	}
	if ch.MetadataOnly {
		return json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": ch.UID, "resourceVersion": ch.ResourceVersion, "ownerReferences": ch.Owners,
		}})
	}
	meta.Name, meta.Labels, meta.Annotations = ch.Ref.Name, ch.Labels, ch.Annotations
	var object map[string]json.RawMessage
	if err := json.Unmarshal(content, &object); err != nil {
		return nil, fmt.Errorf("content: %w", err)
	}
	raw, err := json.Marshal(meta)
	if err != nil {
		return nil, err
	}
	object["metadata"] = raw
	delete(object, "status")
	return json.Marshal(object)
}
