package processruntime

// Reasons of runtimes that are not available, in addition to the common ones.
const (
	// reasonMissing is the reason of a runtime that needs an object of the cluster that does
	// not exist yet: its certificates, or an object that its configuration names.
	reasonMissing = "ObjectMissing"
)

// missing is the error of a runtime that needs an object that does not exist yet. The start is
// retried, as a node retries the start of a pod.
type missing string

// Error implements error.
func (m missing) Error() string { return string(m) }
