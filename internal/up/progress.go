package up

import "time"

// Stage is a part of a start.
type Stage string

// The stages, in order. StagePrevious only occurs if the control plane of a process that was killed
// is still stopping.
const (
	StagePrevious     Stage = "previous control plane"
	StageControlPlane Stage = "control plane"
	StageRegistry     Stage = "registry"
	StageManager      Stage = "manager"
	StageReady        Stage = "ready"
	StageStopping     Stage = "stopping"
)

// Event is a step of a start or of a stop.
type Event struct {
	Stage Stage
	// Done is false when the stage begins and true when it is finished.
	Done bool
	// Took is the duration of a finished stage; for StageReady, of the whole start.
	Took time.Duration
	// Err is the reason why the manager ended. It is started again after a pause.
	Err error
	// Warning is a message about the registry or the manager that the user should see, such as a
	// push that moves the tag of an installed package.
	Warning string
	// Cause is the error of a warning, if there is one.
	Cause error
	// State is set with StageReady.
	State *State
}

// stage reports the start of a stage and returns the function that reports its end.
func (o Options) stage(s Stage) (done func()) {
	begin := o.Now()
	o.Progress(Event{Stage: s})
	return func() { o.Progress(Event{Stage: s, Done: true, Took: o.Now().Sub(begin)}) }
}
