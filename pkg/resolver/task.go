package resolver

// A task is a request that is sent only once.
type task[T any] struct {
	done  chan struct{}
	value T
	err   error
	// cause is the original error; err is the error that the solver receives.
	cause error
	// followed means that the dependencies of the version are read as well. It belongs to
	// the source.
	followed bool
}

func newTask[T any]() *task[T] { return &task[T]{done: make(chan struct{})} }

// complete sets the result.
func (t *task[T]) complete(value T, err, cause error) {
	t.value, t.err, t.cause = value, err, cause
	close(t.done)
}

// wait waits for the result.
func (t *task[T]) wait() (T, error) {
	<-t.done
	return t.value, t.err
}
