"""`java.util.PriorityQueue`, with the same order of equal elements."""

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class JavaQueue(Generic[T]):
    """Elements in ascending order."""

    def __init__(self, order: Callable[[T], int]) -> None:
        self._order = order
        self._heap: list[T] = []

    def __bool__(self) -> bool:
        return bool(self._heap)

    def offer(self, element: T) -> None:
        heap, order = self._heap, self._order
        heap.append(element)
        at = len(heap) - 1
        while at > 0:
            parent = (at - 1) // 2
            if order(element) >= order(heap[parent]):
                break
            heap[at] = heap[parent]
            at = parent
        heap[at] = element

    def poll(self) -> T:
        heap = self._heap
        first, last = heap[0], heap.pop()
        if heap:
            self._sift_down(last)
        return first

    def _sift_down(self, element: T) -> None:
        heap, order = self._heap, self._order
        at, size = 0, len(heap)
        while at < size // 2:
            child = 2 * at + 1
            if child + 1 < size and order(heap[child]) > order(heap[child + 1]):
                child += 1
            if order(element) <= order(heap[child]):
                break
            heap[at] = heap[child]
            at = child
        heap[at] = element
