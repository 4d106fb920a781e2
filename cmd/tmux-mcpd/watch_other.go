//go:build !linux

package main

// parentHandle has no portable equivalent; the parent is asked for by polling.
func parentHandle(int) int { return -1 }
