// Package frontend describes objects of other APIs that use packages, such as the install objects of the first
// generation. The package manager knows none of these APIs: the program passes an [API] to it.
package frontend

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Resource is a package, or an object of an API.
type Resource interface {
	client.Object
	v1.Conditioned

	// PackageKind returns the kind of the object.
	PackageKind() string
}

// API is an API of objects that use packages. A nil API has no objects.
type API struct {
	GroupVersion schema.GroupVersion
	// Kinds are the kinds of the objects, in display order.
	Kinds []string
	// New returns a new object of a kind, which is a Resource, or of the kind of a list.
	New func(kind string) (runtime.Object, error)
	// Facts returns the facts of an object.
	Facts func(Resource) Facts
	// Patch returns the merge patch with which an install object requests another package.
	Patch func(o Resource, reference string) string
}

// Object is an object of an API: an install object, or the description of a package of its namespace.
type Object struct {
	Resource
	Facts
}

// MarshalJSON encodes the object as the API server stores it.
func (o *Object) MarshalJSON() ([]byte, error) { return json.Marshal(o.Resource) }

// Facts are the facts of an object that matter to the package manager.
type Facts struct {
	// IsInstall reports whether the object installs a package, and IsRecord whether it only records another object.
	IsInstall, IsRecord bool
	// Shares reports whether the object only shares a Provider that an administrator installs.
	Shares bool
	// Provider is the name of the Provider that an install object uses, or "".
	Provider string
	// Reference and CRD are the package, or the kind, that an install object requests.
	Reference, CRD string
	// Kinds are the kinds that another object than an install object defines and depends on.
	Kinds []dependency.KindRef
	// IsRefused reports whether no package is installed for the object until a user changes something.
	IsRefused bool
	// Progresses reports whether the object becomes ready, or is deleted, without a change by a user.
	Progresses bool
	// Record is the object that records an install object, or nil.
	Record *Reference
	View
}

// View is the description of an object for users.
type View struct {
	// Package is the package or kind that an install object requests, or the image of the controller.
	Package string
	// Conditions are the conditions of the object.
	Conditions []v1.Condition
	// IsInstalled reports whether the package, or the controller, is installed.
	IsInstalled bool
	// The presentation, the permissions and the defined kinds of the package; an install object has them in its record.
	Presentation xpkg.Presentation
	Permissions  []rbacv1.PolicyRule
	Defines      []string
	// HasController reports whether the package has a controller, and Controller is the Provider or the Deployment that
	// runs it, or nil.
	HasController bool
	Controller    *Reference
}

// Reference names an object.
type Reference struct{ Kind, Namespace, Name string }

// Of returns an object of the API with its facts.
func (a *API) Of(o Resource) *Object {
	o.GetObjectKind().SetGroupVersionKind(a.GroupVersion.WithKind(o.PackageKind()))
	return &Object{o, a.Facts(o)}
}

// GroupVersionKinds returns the kinds of the objects.
func (a *API) GroupVersionKinds() []schema.GroupVersionKind {
	if a == nil {
		return nil
	}
	out := make([]schema.GroupVersionKind, len(a.Kinds))
	for i, kind := range a.Kinds {
		out[i] = a.GroupVersion.WithKind(kind)
	}
	return out
}

// KindNamed returns the kind with a name in any case, or "".
func (a *API) KindNamed(name string) string {
	for _, k := range a.GroupVersionKinds() {
		if strings.EqualFold(k.Kind, name) {
			return k.Kind
		}
	}
	return ""
}

// List returns the objects of a kind, without those that only record others.
func (a *API) List(
	ctx context.Context, reader client.Reader, kind string, opts ...client.ListOption,
) ([]*Object, error) {
	list, err := a.New(kind + "List")
	if err != nil {
		return nil, err
	}
	if err := reader.List(ctx, list.(client.ObjectList), opts...); err != nil {
		return nil, fmt.Errorf("list %ss: %w", kind, err)
	}
	var out []*Object
	return out, meta.EachListItem(list, func(item runtime.Object) error {
		if o := a.Of(item.(Resource)); !o.IsRecord {
			out = append(out, o)
		}
		return nil
	})
}

// All returns the objects of all namespaces, as far as the API server serves them and the client may read them.
func (a *API) All(ctx context.Context, reader client.Reader) []*Object {
	var out []*Object
	for _, k := range a.GroupVersionKinds() {
		all, err := a.List(ctx, reader, k.Kind)
		if err != nil {
			return out
		}
		out = append(out, all...)
	}
	return out
}

// Get returns an object, or nil if it does not exist.
func (a *API) Get(ctx context.Context, reader client.Reader, ref Reference) (*Object, error) {
	if ref.Kind == "" || a.KindNamed(ref.Kind) != ref.Kind {
		return nil, nil
	}
	o, err := a.New(ref.Kind)
	if err != nil {
		return nil, err
	}
	err = reader.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, o.(client.Object))
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return a.Of(o.(Resource)), nil
}

// RecordOf returns the object that records an install object, or nil if there is none.
func (a *API) RecordOf(ctx context.Context, reader client.Reader, o *Object) (*Object, error) {
	if o.Record == nil {
		return nil, nil
	}
	return a.Get(ctx, reader, *o.Record)
}

// Installs returns the install objects among objects.
func Installs(all []*Object) []*Object {
	return slices.DeleteFunc(slices.Clone(all), func(o *Object) bool { return !o.IsInstall })
}

// Command returns the kubectl command with a verb, such as "delete", for the object, with further words of the command
// line.
func (o *Object) Command(verb string, more ...string) string {
	kind := o.GetObjectKind().GroupVersionKind()
	words := []string{"kubectl", verb, "--namespace", o.GetNamespace(), strings.ToLower(kind.Kind) + "s." +
		kind.Group, o.GetName()}
	return strings.Join(append(words, more...), " ")
}

// ShortName returns the namespace and the name of the object.
func (o *Object) ShortName() string { return o.GetNamespace() + "/" + o.GetName() }
