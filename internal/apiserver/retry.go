package apiserver

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

// RetryOnConflict calls write, which reads an object and writes it, until it does not fail with a conflict, at most ten
// times. The manager writes the statuses of packages meanwhile.
func RetryOnConflict(write func() error) error {
	return retry.RetryOnConflict(wait.Backoff{Steps: 10, Duration: 10 * time.Millisecond, Factor: 1, Jitter: 0.1}, write)
}
