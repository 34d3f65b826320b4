# Trains a linear classifier by gradient descent on the cross-entropy.
import numpy as np

n, features, classes, rate = 300, 5, 3, 0.5
i = np.arange(n)
x = np.sin(np.outer(i + 1, np.arange(features) + 1.3))
label = np.argmax(x @ np.cos(np.outer(np.arange(features), np.arange(classes) + 1.7)), axis=1)
target = (label[:, None] == np.arange(classes)).astype(float)

w = np.zeros((features, classes))
b = np.zeros(classes)
for step in range(100):
    z = x @ w + b
    e = np.exp(z - z.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    loss = -np.mean(np.sum(target * np.log(p), axis=1))
    g = (p - target) / n
    w -= rate * (x.T @ g)
    b -= rate * g.sum(axis=0)
    if step % 25 == 0:
        print("step", step, "loss", loss)

right = np.argmax(x @ w + b, axis=1) == label
print("accuracy", right.mean())
print("weights", w)
print("bias", b)
