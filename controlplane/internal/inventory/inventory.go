// Package inventory tracks the custom resources of a cluster, and which of them have objects, from the keys of the
// API server's database.
//
// The garbage collector uses it to watch only resources that have objects. For each watched resource, the API server
// creates a handler with its schema and a cache; a package can contain a thousand resources of which a few are used.
package inventory

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Prefix is the prefix of the keys of all objects in etcd. The keys of custom resources start with Prefix +
// group + "/" + plural + "/".
const Prefix = "/registry/"

const definitions = Prefix + "apiextensions.k8s.io/customresourcedefinitions/"

// An Inventory is filled with keys in the order in which they are written. The zero
// value is not ready for use.
type Inventory struct {
	mu sync.Mutex
	// populated has an entry for each defined resource: whether it has had objects.
	populated map[schema.GroupResource]bool
	changed   chan struct{}
}

// New is an inventory of nothing.
func New() *Inventory {
	return &Inventory{populated: map[schema.GroupResource]bool{}, changed: make(chan struct{}, 1)}
}

// Put records that an object was written.
func (i *Inventory) Put(key string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if name, ok := strings.CutPrefix(key, definitions); ok {
		resource := schema.ParseGroupResource(name)
		i.populated[resource] = i.populated[resource]
		return
	}
	resource, ok := parse(key)
	if populated, defined := i.populated[resource]; !ok || !defined || populated {
		return
	}
	i.populated[resource] = true
	select {
	case i.changed <- struct{}{}:
	default:
	}
}

// Delete records that an object was deleted. A resource that had objects stays populated until its CRD is deleted:
// watchers must see the last deletion, and more objects are likely.
func (i *Inventory) Delete(key string) {
	name, ok := strings.CutPrefix(key, definitions)
	if !ok {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.populated, schema.ParseGroupResource(name))
}

// Empty reports whether a resource is a custom resource without objects.
func (i *Inventory) Empty(resource schema.GroupResource) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	populated, defined := i.populated[resource]
	return defined && !populated
}

// Populated lists the custom resources that have objects.
func (i *Inventory) Populated() []schema.GroupResource {
	i.mu.Lock()
	defer i.mu.Unlock()
	var out []schema.GroupResource
	for resource, populated := range i.populated {
		if populated {
			out = append(out, resource)
		}
	}
	return out
}

// Changed receives when a resource got its first object. Several changes may be one
// receive.
func (i *Inventory) Changed() <-chan struct{} { return i.changed }

// parse reads the resource out of the key of an object.
func parse(key string) (schema.GroupResource, bool) {
	rest, ok := strings.CutPrefix(key, Prefix)
	if !ok {
		return schema.GroupResource{}, false
	}
	parts := strings.SplitN(rest, "/", 3)
	if len(parts) < 3 {
		return schema.GroupResource{}, false
	}
	return schema.GroupResource{Group: parts[0], Resource: parts[1]}, true
}
