package firstgen

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/xpkg-dev/xpkg/internal/runtime"
)

// runtimes has the runtimes of the namespaces in which Packages use them, and the Packages by the names of their
// processes. The zero value is empty.
type runtimes struct {
	mu         sync.Mutex
	namespaces map[string]*namespaceRuntime
	processes  map[string]types.NamespacedName
}

// namespaceRuntime is the runtime of a namespace, or nil, with the names of the Packages that use it.
type namespaceRuntime struct {
	runtime  runtime.Runtime
	packages map[string]bool
}

// use returns the runtime of the namespace of a Package, which it creates for the first Package of the namespace. The
// runtime is kept until all Packages that use it are forgotten.
func (r *runtimes) use(key types.NamespacedName, create func(namespace string) runtime.Runtime) runtime.Runtime {
	r.mu.Lock()
	defer r.mu.Unlock()
	of, ok := r.namespaces[key.Namespace]
	if !ok {
		if r.namespaces == nil {
			r.namespaces = map[string]*namespaceRuntime{}
		}
		of = &namespaceRuntime{create(key.Namespace), map[string]bool{}}
		r.namespaces[key.Namespace] = of
	}
	of.packages[key.Name] = true
	return of.runtime
}

// forget forgets a Package that uses no runtime any more. The runtime of a namespace without other Packages is
// forgotten as well. Process is the name of the process of the Package.
func (r *runtimes) forget(key types.NamespacedName, process string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.processes, process)
	if of := r.namespaces[key.Namespace]; of != nil {
		delete(of.packages, key.Name)
		if len(of.packages) == 0 {
			delete(r.namespaces, key.Namespace)
		}
	}
}

// remember records the name of the process of a Package.
func (r *runtimes) remember(key types.NamespacedName, process string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.processes == nil {
		r.processes = map[string]types.NamespacedName{}
	}
	r.processes[process] = key
}

// withProcess returns the Package with a process, and false for another process.
func (r *runtimes) withProcess(name string) (types.NamespacedName, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key, ok := r.processes[name]
	return key, ok
}
