package fetch

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// room is the share of the memory for parsing that one package holds.
type room struct {
	memory     *semaphore.Weighted
	all, taken int64
}

// take waits until the number of bytes is free. A package that needs more than the limit takes
// all of it, and is then parsed alone.
func (r *room) take(ctx context.Context, bytes int64) error {
	r.leave()
	bytes = min(bytes, r.all)
	if err := r.memory.Acquire(ctx, bytes); err != nil {
		return err
	}
	r.taken = bytes
	return nil
}

func (r *room) leave() {
	r.memory.Release(r.taken)
	r.taken = 0
}
