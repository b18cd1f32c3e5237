// Package pty opens pseudo terminals, and checks what a command writes to one. Only Linux has it.
package pty
