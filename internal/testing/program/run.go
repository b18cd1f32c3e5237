package program

import "runtime"

// run starts the process and waits for its end. It keeps its thread for as long as
// the process runs, since it is the end of the thread that a process learns of
// which is to die with its parent.
func (m *Manager) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := m.cmd.Start()
	started <- err
	if err == nil {
		m.err = m.cmd.Wait()
	}
	close(m.done)
}
