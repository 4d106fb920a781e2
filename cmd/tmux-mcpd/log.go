package main

import (
	"fmt"
	"io"
	"os"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"gopkg.in/natefinch/lumberjack.v2"
)

// Rotation of a log file.
const (
	logFileMB = 10
	logFiles  = 3
)

// logger is the daemon's log: JSON lines, one per event. Pane content never
// gets there.
type logger struct {
	*zap.Logger
	level zap.AtomicLevel
	file  *lumberjack.Logger // nil for stderr
}

// openLog makes the log of c on stderr or in its file. It starts nothing but
// what the first rotation of a file starts.
func openLog(c *config, stderr io.Writer) (*logger, error) {
	var level zapcore.Level
	if err := level.UnmarshalText([]byte(c.logLevel)); err != nil {
		return nil, coded(exitUsage, "--log-level: %w", err)
	}
	l := &logger{level: zap.NewAtomicLevelAt(level)}
	out := stderr
	if c.logFile != "" {
		// lumberjack opens the file at the first record, and by then nobody
		// reads a complaint: try now.
		f, err := os.OpenFile(c.logFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return nil, fmt.Errorf("log file: %w", err)
		}
		if err := f.Close(); err != nil {
			return nil, fmt.Errorf("log file: %w", err)
		}
		l.file = &lumberjack.Logger{Filename: c.logFile, MaxSize: logFileMB, MaxBackups: logFiles}
		out = l.file
	}
	enc := zap.NewProductionEncoderConfig()
	enc.TimeKey, enc.EncodeTime = "time", zapcore.RFC3339NanoTimeEncoder
	core := zapcore.NewCore(zapcore.NewJSONEncoder(enc), zapcore.Lock(zapcore.AddSync(out)), l.level)
	l.Logger = zap.New(core)
	return l, nil
}

// reopen starts a new file, if there is one.
func (l *logger) reopen() {
	if l.file == nil {
		return
	}
	if err := l.file.Rotate(); err != nil {
		l.Error("log not rotated", zap.Error(err))
	}
}

func (l *logger) close() {
	_ = l.Sync() // stderr cannot be synced everywhere
	if l.file != nil {
		_ = l.file.Close()
	}
}
