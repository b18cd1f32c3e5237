package transactions

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/event"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
)

// Held knows which packages the transactions of this manager hold. The manager holds them again after a restart, when
// it continues the transactions.
type Held struct {
	changes map[string]chan event.GenericEvent

	mu sync.Mutex
	by map[v1alpha1.PackageName]string
}

// NewHeld returns a Held without packages.
func NewHeld() *Held {
	h := &Held{changes: map[string]chan event.GenericEvent{}, by: map[v1alpha1.PackageName]string{}}
	for _, kind := range v1.PackageKinds() {
		h.changes[kind] = make(chan event.GenericEvent)
	}
	return h
}

// By returns the name of the transaction that holds a package, or "".
func (h *Held) By(kind, name string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.by[v1alpha1.PackageName{Kind: kind, Name: name}]
}

// Changes returns the channel that receives an event for each package of a kind that is held or released. Its receiver
// must run while transactions do.
func (h *Held) Changes(kind string) <-chan event.GenericEvent { return h.changes[kind] }

// hold holds packages for a transaction.
func (h *Held) hold(ctx context.Context, transaction string, packages []v1alpha1.PackageName) {
	for _, p := range packages {
		h.mu.Lock()
		was := h.by[p]
		h.by[p] = transaction
		h.mu.Unlock()
		if was != transaction {
			h.notify(ctx, p)
		}
	}
}

// release releases all packages of a transaction.
func (h *Held) release(ctx context.Context, transaction string) {
	h.mu.Lock()
	var released []v1alpha1.PackageName
	for p, by := range h.by {
		if by == transaction {
			released = append(released, p)
			delete(h.by, p)
		}
	}
	h.mu.Unlock()
	for _, p := range released {
		h.notify(ctx, p)
	}
}

func (h *Held) notify(ctx context.Context, p v1alpha1.PackageName) {
	o := v1.NewPackage(p.Kind)
	o.SetName(p.Name)
	select {
	case h.changes[p.Kind] <- event.GenericEvent{Object: o}:
	case <-ctx.Done():
	}
}
