package program

import "runtime"

// run starts the process and waits until it has exited. It locks its thread meanwhile, because the
// kernel kills the process when the thread that started it exits.
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
