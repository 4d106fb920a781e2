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
	audit *zap.Logger // nil for none
	files []*lumberjack.Logger
}

// openLog makes the log of c on stderr or in its file, and its audit. It starts
// nothing but what the first rotation of a file starts.
func openLog(c *config, stderr io.Writer) (*logger, error) {
	var level zapcore.Level
	if err := level.UnmarshalText([]byte(c.logLevel)); err != nil {
		return nil, coded(exitUsage, "--log-level: %w", err)
	}
	l := &logger{level: zap.NewAtomicLevelAt(level)}
	out := stderr
	if c.logFile != "" {
		file, err := openRotated(c.logFile)
		if err != nil {
			return nil, fmt.Errorf("log file: %w", err)
		}
		l.files, out = append(l.files, file), file
	}
	l.Logger = jsonLog(out, l.level)
	switch c.audit {
	case "off":
	case "log": // whatever the level of the rest
		l.audit = jsonLog(out, zapcore.InfoLevel).Named("audit")
	default:
		file, err := openRotated(c.audit)
		if err != nil {
			return nil, fmt.Errorf("audit file: %w", err)
		}
		l.files = append(l.files, file)
		l.audit = jsonLog(file, zapcore.InfoLevel).Named("audit")
	}
	return l, nil
}

func jsonLog(out io.Writer, level zapcore.LevelEnabler) *zap.Logger {
	enc := zap.NewProductionEncoderConfig()
	enc.TimeKey, enc.EncodeTime = "time", zapcore.RFC3339NanoTimeEncoder
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(enc), zapcore.Lock(zapcore.AddSync(out)), level))
}

// openRotated opens a log file that nobody else may read.
func openRotated(path string) (*lumberjack.Logger, error) {
	// lumberjack opens the file at the first record, and by then nobody reads a
	// complaint: try now.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err == nil {
		err = f.Close()
	}
	return &lumberjack.Logger{Filename: path, MaxSize: logFileMB, MaxBackups: logFiles}, err
}

// reopen starts new files, if there are any.
func (l *logger) reopen() {
	for _, f := range l.files {
		if err := f.Rotate(); err != nil {
			l.Error("log not rotated", zap.String("file", f.Filename), zap.Error(err))
		}
	}
}

func (l *logger) close() {
	_ = l.Sync() // stderr cannot be synced everywhere
	for _, f := range l.files {
		_ = f.Close()
	}
}
