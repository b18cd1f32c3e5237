package resolver

// A task is a question that was asked once.
type task[T any] struct {
	done  chan struct{}
	value T
	err   error
	// cause is what was wrong, in the words of who found it; err is what the solver
	// is told.
	cause error
	// followed says that what the answer leads to is asked for as well. It is of the
	// source.
	followed bool
}

func newTask[T any]() *task[T] { return &task[T]{done: make(chan struct{})} }

// end gives the answer.
func (t *task[T]) complete(value T, err, cause error) {
	t.value, t.err, t.cause = value, err, cause
	close(t.done)
}

// get waits for the answer.
func (t *task[T]) wait() (T, error) {
	<-t.done
	return t.value, t.err
}
